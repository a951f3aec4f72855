import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createFal } from "@ai-sdk/fal";

// This is Vercel's client; fal's own is in fal.test.mjs. It takes no base URL, and
// keeps its key from URLs of another host than fal's.
const { SERVER_URL: server, SERVER_CREDENTIAL: credential } = process.env;
const queue = "https://queue.fal.run";
const asFal = async (url, init) => {
  assert.equal(new URL(url).origin, queue);
  const response = await fetch(url.replace(queue, server), init);
  return new Response((await response.text()).replaceAll(server, queue), response);
};
const sdk = (apiKey = credential) => createFal({ apiKey, fetch: asFal }).video("fal-ai/video/v2/image-to-video");
const generate = (prompt, { model = sdk(), pollTimeoutMs = 10_000, headers } = {}) =>
  model.doGenerate({ prompt, n: 1, headers, providerOptions: { fal: { pollIntervalMs: 40, pollTimeoutMs } } });

describe("fal by the AI SDK", { concurrency: true }, () => {
  test("doGenerate asks for the result until it is there", async () => {
    const { videos } = await generate("succeeds");
    assert.match(videos[0].url, /^https:\/\/.*\.mp4$/);
    assert.equal(videos[0].mediaType, "video/mp4");
  });

  test("what failed, was filtered or canceled is an error of its status", async () => {
    for (const [prompt, status] of [["fails", 500], ["filtered", 422], ["rejected", 422], ["canceled", 499], ["expires", 504]])
      await assert.rejects(generate(prompt), (error) => error.statusCode === status);
  });

  test("a limit of the client's ends the wait", async () => {
    await assert.rejects(generate("goes on", { pollTimeoutMs: 300 }), /timed out/);
  });

  test("a broken gateway is an error that may be repeated, a wrong key is not", async () => {
    for (const status of [429, 503])
      await assert.rejects(generate("succeeds", { headers: { "x-fault": `${status}` } }), (error) => error.statusCode === status && error.isRetryable);
    await assert.rejects(generate("succeeds", { model: sdk("wrong") }), (error) => error.statusCode === 401 && !error.isRetryable);
  });
});
