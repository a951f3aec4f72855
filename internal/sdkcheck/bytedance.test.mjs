import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createByteDance } from "@ai-sdk/bytedance";

// This is the client of others than Ark, which publishes none for JavaScript.
const sdk = (apiKey = process.env.SERVER_CREDENTIAL) =>
  createByteDance({ apiKey, baseURL: `${process.env.SERVER_URL}/api/v3` }).video("seedance-1-0-pro-250528");
const generate = (prompt, { model = sdk(), pollTimeoutMs = 10_000, ...more } = {}) =>
  model.doGenerate({ prompt, n: 1, providerOptions: { bytedance: { pollIntervalMs: 40, pollTimeoutMs } }, ...more });

describe("bytedance", { concurrency: true }, () => {
  test("doGenerate waits for the video", async () => {
    const { videos, providerMetadata } = await generate("succeeds", { resolution: "1280x720", duration: 5, seed: 7 });
    assert.match(videos[0].url, /^https:\/\/.*\.mp4$/);
    assert.match(providerMetadata.bytedance.taskId, /^cgt-/);
  });

  test("what failed or was filtered is an error", async () => {
    for (const prompt of ["fails", "filtered", "rejected"])
      await assert.rejects(generate(prompt), (error) => error.name === "BYTEDANCE_VIDEO_GENERATION_FAILED");
  });

  // This version knows no other end: it looks on at what was canceled or expired.
  test("a limit of the client's ends the wait", async () => {
    for (const prompt of ["goes on", "canceled", "expires"])
      await assert.rejects(generate(prompt, { pollTimeoutMs: 600 }), /timed out/);
  });

  test("a broken gateway is an error that may be repeated, a wrong key is not", async () => {
    await assert.rejects(generate("gateway"), (error) => error.statusCode === 503 && error.isRetryable);
    await assert.rejects(generate("busy"), (error) => error.statusCode === 429 && error.isRetryable && error.message === "busy");
    await assert.rejects(generate("succeeds", { model: sdk("wrong") }), (error) => {
      assert.equal(error.statusCode, 401);
      assert.equal(error.data.error.code, "AuthenticationError");
      return !error.isRetryable;
    });
  });
});
