import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createHttpPoller } from "@azure/core-lro";

const { SERVER_URL: server, SERVER_CREDENTIAL: credential } = process.env;

// The client polls, and leaves sending to its user.
const send = async (method, url, body, key = credential) => {
  const response = await fetch(new URL(url, server), {
    method,
    body: body && JSON.stringify(body),
    headers: { "api-key": key, "content-type": "application/json" },
  });
  const rawResponse = {
    statusCode: response.status,
    headers: Object.fromEntries(response.headers),
    body: await response.json(),
    request: { method, url },
  };
  if (!response.ok) throw Object.assign(new Error(rawResponse.body.error.message), { rawResponse });
  return { flatResponse: rawResponse.body, rawResponse };
};
const poller = (prompt, key) =>
  createHttpPoller(
    {
      sendInitialRequest: () => send("POST", "/videos:generate?api-version=2026-01-01", { prompt }, key),
      sendPollRequest: (url) => send("GET", url),
    },
    { intervalInMs: 40 },
  );

describe("azure-lro", { concurrency: true }, () => {
  test("pollUntilDone gives the result", async () => {
    const seen = new Set();
    const operation = poller("succeeds");
    operation.onProgress((state) => seen.add(state.status));
    const done = await operation.pollUntilDone();
    assert.match(done.result.url, /^https:\/\/.*\.mp4$/);
    assert.equal(operation.operationState.status, "succeeded");
    assert.ok(seen.has("running"));
  });

  test("a failed operation is an error with its code", async () => {
    await assert.rejects(poller("fails").pollUntilDone(), /InternalServerError.*out of memory/);
    await assert.rejects(poller("filtered").pollUntilDone(), /ContentFilter/);
    await assert.rejects(poller("canceled").pollUntilDone(), /cancel/i);
  });

  test("a broken gateway, a wrong key and a missing version are told by status", async () => {
    await assert.rejects(poller("gateway").pollUntilDone(), (error) => error.rawResponse.statusCode === 503);
    await assert.rejects(poller("succeeds", "wrong").pollUntilDone(), (error) => error.rawResponse.statusCode === 401);
    await assert.rejects(send("POST", "/videos:generate", {}), (error) => error.rawResponse.statusCode === 400);
  });
});
