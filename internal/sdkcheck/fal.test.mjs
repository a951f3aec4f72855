import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ApiError, ValidationError, createFalClient } from "@fal-ai/client";

// The SDK takes no base URL, but each request passes its middleware.
const sdk = (credentials = process.env.SERVER_CREDENTIAL) =>
  createFalClient({
    credentials,
    requestMiddleware: async (request) => {
      assert.equal(new URL(request.url).origin, "https://queue.fal.run");
      return { ...request, url: request.url.replace("https://queue.fal.run", process.env.SERVER_URL) };
    },
  });
const fal = sdk();
const model = "fal-ai/video/v2/image-to-video";
const pollInterval = 40;
const submit = async (prompt) => (await fal.queue.submit(model, { input: { prompt } })).request_id;

describe("fal", { concurrency: true }, () => {
  test("subscribe tells each state and gives the output", async () => {
    const seen = new Set();
    const logs = new Set();
    const result = await fal.subscribe(model, {
      input: { prompt: "succeeds" },
      logs: true,
      pollInterval,
      onQueueUpdate: (update) => {
        seen.add(update.status);
        if (update.status === "IN_QUEUE") assert.equal(update.queue_position, 1);
        for (const log of update.logs ?? []) logs.add(log.message);
      },
    });
    assert.deepEqual([...seen], ["IN_QUEUE", "IN_PROGRESS", "COMPLETED"]);
    assert.match(result.data.video.url, /\.mp4$/);
    assert.ok(result.requestId);
    assert.equal([...logs].filter((line) => line.startsWith("20%")).length, 1);
  });

  test("submit, subscribeToStatus and result agree on the URLs of a model with a sub-path", async () => {
    const submitted = await fal.queue.submit(model, { input: { prompt: "succeeds" }, webhookUrl: "https://example.test/hook" });
    const requestId = submitted.request_id;
    assert.equal(submitted.status_url, `${process.env.SERVER_URL}/fal-ai/video/requests/${requestId}/status`);
    const status = await fal.queue.subscribeToStatus(model, { requestId, pollInterval });
    assert.equal(status.status, "COMPLETED");
    assert.ok(status.metrics.inference_time > 0);
    const { data } = await fal.queue.result(model, { requestId });
    assert.match(data.video.url, /\.mp4$/);
  });

  test("a workflow is asked for by its namespace too", async () => {
    const { data } = await fal.subscribe("workflows/own/flow", { input: { prompt: "succeeds" }, pollInterval });
    assert.match(data.video.url, /\.mp4$/);
  });

  test("a failure completes the status and is the error of the result", async () => {
    const requestId = await submit("fails");
    const status = await fal.queue.subscribeToStatus(model, { requestId, pollInterval });
    assert.equal(status.error_type, "runner_server_error");
    await assert.rejects(fal.queue.result(model, { requestId }), (error) => error instanceof ApiError && error.status === 500);
  });

  test("a rejected input is a validation error of the field", async () => {
    await assert.rejects(fal.subscribe(model, { input: { prompt: "rejected" }, pollInterval }), (error) => {
      assert.ok(error instanceof ValidationError);
      assert.equal(error.getFieldErrors("prompt")[0].msg, "no face found");
      return true;
    });
  });

  test("a canceled request is completed and has no result", async () => {
    const requestId = await submit("goes on");
    await fal.queue.cancel(model, { requestId });
    const status = await fal.queue.subscribeToStatus(model, { requestId, pollInterval });
    assert.equal(status.status, "COMPLETED");
    await assert.rejects(fal.queue.result(model, { requestId }), (error) => error.status === 499);
    await assert.rejects(fal.queue.cancel(model, { requestId }), (error) => error.status === 400);
  });

  test("a time limit of the client's cancels the request", async () => {
    let requestId;
    await assert.rejects(
      fal.subscribe(model, { input: { prompt: "goes on" }, pollInterval, timeout: 300, onEnqueue: (id) => (requestId = id) }),
      /timed out/,
    );
    const status = await fal.queue.subscribeToStatus(model, { requestId, pollInterval });
    assert.equal(status.error_type, "client_cancelled");
  });

  test("a look that fails is repeated", async () => {
    const { data } = await fal.subscribe(model, { input: { prompt: "gateway" }, pollInterval });
    assert.match(data.video.url, /\.mp4$/);
  });

  test("a wrong key, an unknown id and a result too early are told by status", async () => {
    await assert.rejects(sdk("wrong").queue.submit(model, { input: { prompt: "succeeds" } }), (error) => error.status === 401);
    await assert.rejects(fal.queue.status(model, { requestId: "none" }), (error) => error.status === 404);
    const requestId = await submit("goes on");
    await assert.rejects(fal.queue.result(model, { requestId }), (error) => error.status === 400);
  });
});
