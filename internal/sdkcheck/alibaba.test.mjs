import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createAlibaba } from "@ai-sdk/alibaba";

// This is the client of others than Alibaba, which publishes none for JavaScript.
const sdk = (apiKey = process.env.SERVER_CREDENTIAL, model = "wan2.6-t2v") =>
  createAlibaba({ apiKey, videoBaseURL: process.env.SERVER_URL }).video(model);
const generate = (prompt, { model = sdk(), pollTimeoutMs = 10_000, ...more } = {}) =>
  model.doGenerate({ prompt, n: 1, providerOptions: { alibaba: { pollIntervalMs: 40, pollTimeoutMs } }, ...more });

describe("alibaba", { concurrency: true }, () => {
  test("doGenerate waits for the video", async () => {
    const { videos, providerMetadata } = await generate("succeeds", { resolution: "1280x720", duration: 5 });
    assert.match(videos[0].url, /^https:\/\/.*\.mp4$/);
    assert.match(providerMetadata.alibaba.taskId, /^[0-9a-f-]{36}$/);
  });

  test("what failed, was filtered or canceled is an error with its reason", async () => {
    await assert.rejects(generate("fails"), /generation failed\. .*out of memory/);
    await assert.rejects(generate("filtered"), /generation failed\. .*unsafe/);
    await assert.rejects(generate("canceled"), /generation canceled\./);
  });

  // A task that is not known any more is UNKNOWN, at which this version looks on.
  test("a limit of the client's ends the wait", async () => {
    for (const prompt of ["goes on", "expires"]) await assert.rejects(generate(prompt, { pollTimeoutMs: 600 }), /timed out/);
  });

  test("a broken gateway is an error that may be repeated, a wrong key is not", async () => {
    await assert.rejects(generate("gateway"), (error) => error.statusCode === 503 && error.isRetryable);
    await assert.rejects(generate("busy"), (error) => error.statusCode === 429 && error.isRetryable && error.message === "busy");
    await assert.rejects(generate("succeeds", { model: sdk("wrong") }), (error) => {
      assert.equal(error.statusCode, 401);
      assert.equal(error.data.code, "InvalidApiKey");
      return !error.isRetryable;
    });
  });
});
