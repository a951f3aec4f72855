import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createReplicate } from "@ai-sdk/replicate";

// This is Vercel's client; Replicate's own is in replicate.test.mjs.
const version = "5c7d5dc6dd8bf75c1acaa8565735e7986bc5b66206b55cca93cb72c9bf15ccaa";
const sdk = (apiToken = process.env.SERVER_CREDENTIAL, model = "owner/name") =>
  createReplicate({ apiToken, baseURL: `${process.env.SERVER_URL}/v1` }).video(model);
const generate = (prompt, { model = sdk(), pollTimeoutMs = 10_000, maxWaitTimeInSeconds = 1 } = {}) =>
  model.doGenerate({ prompt, n: 1, providerOptions: { replicate: { pollIntervalMs: 40, pollTimeoutMs, maxWaitTimeInSeconds } } });

describe("replicate by the AI SDK", { concurrency: true }, () => {
  test("doGenerate looks when the held create has not ended it", async () => {
    const { videos, providerMetadata } = await generate("succeeds");
    assert.match(videos[0].url, /^https:\/\/.*\.mp4$/);
    assert.ok(providerMetadata.replicate.metrics.predict_time > 0);
  });

  test("doGenerate of a version is held until the end", async () => {
    const { videos } = await generate("succeeds", { model: sdk(undefined, `owner/name:${version}`), maxWaitTimeInSeconds: 60 });
    assert.match(videos[0].url, /^https:\/\/.*\.mp4$/);
  });

  test("what failed, was filtered or canceled is an error with its reason", async () => {
    await assert.rejects(generate("fails"), /generation failed: out of memory/);
    await assert.rejects(generate("filtered"), /generation failed: unsafe/);
    await assert.rejects(generate("canceled"), /canceled/);
  });

  test("a limit of the client's ends the wait", async () => {
    await assert.rejects(generate("goes on", { pollTimeoutMs: 300 }), /timed out/);
  });

  test("a broken gateway is an error that may be repeated, a wrong token is not", async () => {
    await assert.rejects(generate("late gateway"), (error) => error.statusCode === 503 && error.isRetryable);
    await assert.rejects(generate("late busy"), (error) => error.statusCode === 429 && error.isRetryable && error.message === "busy");
    await assert.rejects(generate("succeeds", { model: sdk("wrong") }), (error) => {
      assert.equal(error.statusCode, 401);
      assert.equal(error.message, "You did not pass a valid authentication token");
      return !error.isRetryable;
    });
  });
});
