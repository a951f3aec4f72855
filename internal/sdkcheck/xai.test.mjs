import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createXai } from "@ai-sdk/xai";

// This is the client of others than xAI, which publishes none for JavaScript.
const sdk = (apiKey = process.env.SERVER_CREDENTIAL) =>
  createXai({ apiKey, baseURL: `${process.env.SERVER_URL}/v1` }).video("grok-imagine-video");
const generate = (prompt, model = sdk()) =>
  model.doGenerate({ prompt, n: 1, providerOptions: { xai: { pollIntervalMs: 40, pollTimeoutMs: 3000 } } });

describe("xai", { concurrency: true }, () => {
  test("doGenerate waits for the video", async () => {
    const { videos } = await generate("succeeds");
    assert.match(videos[0].url, /^https:\/\/.*\.mp4$/);
  });

  test("what failed, was filtered or expired is an error", async () => {
    for (const prompt of ["fails", "filtered", "expires"]) await assert.rejects(generate(prompt));
  });

  test("a limit of the client's ends the wait", async () => {
    await assert.rejects(generate("goes on"), /timed out/);
  });

  test("a broken gateway is an error that may be repeated, a wrong key is not", async () => {
    await assert.rejects(generate("gateway"), (error) => error.statusCode === 503 && error.isRetryable);
    await assert.rejects(generate("busy"), (error) => error.statusCode === 429 && error.isRetryable);
    await assert.rejects(generate("succeeds", sdk("wrong")), (error) => error.statusCode === 401 && !error.isRetryable);
  });
});
