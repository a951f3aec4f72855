import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createVertex } from "@ai-sdk/google-vertex";

// The token comes from where Google's library for credentials would get it.
const parent = "projects/p/locations/us-central1/publishers/google";
const sdk = (token = process.env.SERVER_CREDENTIAL) =>
  createVertex({
    project: "p",
    location: "us-central1",
    baseURL: `${process.env.SERVER_URL}/v1beta1/${parent}`,
    googleAuthOptions: { authClient: { getAccessToken: async () => ({ token }) } },
  }).video("veo-3.1-generate-001");
const generate = (prompt, { model = sdk(), pollTimeoutMs = 10_000 } = {}) =>
  model.doGenerate({ prompt, n: 1, providerOptions: { vertex: { pollIntervalMs: 40, pollTimeoutMs } } });

describe("vertex", { concurrency: true }, () => {
  test("doGenerate waits for the video", async () => {
    const { videos } = await generate("succeeds");
    assert.match(videos[0].url, /^gs:\/\/.*\.mp4$/);
    assert.equal(videos[0].mediaType, "video/mp4");
  });

  test("a failed operation is an error with its message, a filtered one has no videos", async () => {
    await assert.rejects(generate("fails"), /generation failed: out of memory/);
    await assert.rejects(generate("canceled"), /generation failed: .*cancelled/);
    await assert.rejects(generate("expires"), /generation failed: .*deadline/);
    await assert.rejects(generate("filtered"), (error) => {
      const operation = JSON.parse(error.message.match(/Response: (.*)/)[1]);
      assert.ok(operation.name.startsWith(`${parent}/models/veo-3.1-generate-001/operations/`));
      assert.equal(operation.response.raiMediaFilteredCount, 1);
      return true;
    });
  });

  test("a limit of the client's ends the wait", async () => {
    await assert.rejects(generate("goes on", { pollTimeoutMs: 600 }), /timed out/);
  });

  test("a broken gateway is an error that may be repeated, a wrong token is not", async () => {
    await assert.rejects(generate("gateway"), (error) => error.statusCode === 503 && error.isRetryable);
    await assert.rejects(generate("busy"), (error) => error.statusCode === 429 && error.isRetryable && error.message === "busy");
    await assert.rejects(generate("succeeds", { model: sdk("wrong") }), (error) => {
      assert.equal(error.statusCode, 401);
      assert.equal(error.data.error.status, "UNAUTHENTICATED");
      return !error.isRetryable;
    });
  });
});
