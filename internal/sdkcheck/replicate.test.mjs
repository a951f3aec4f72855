import assert from "node:assert/strict";
import { describe, test } from "node:test";
import Replicate, { parseProgressFromLogs } from "replicate";

const baseUrl = `${process.env.SERVER_URL}/v1`;
const sdk = (auth = process.env.SERVER_CREDENTIAL) => new Replicate({ auth, baseUrl, useFileOutput: false });
const replicate = sdk();
const model = "owner/name";
const version = "5c7d5dc6dd8bf75c1acaa8565735e7986bc5b66206b55cca93cb72c9bf15ccaa";
const poll = { mode: "poll", interval: 40 };
const input = (prompt) => ({ input: { prompt } });

describe("replicate", { concurrency: true }, () => {
  test("run polls until the output is there", async () => {
    const seen = new Set();
    let percent = 0;
    const output = await replicate.run(model, { ...input("succeeds"), wait: poll }, (prediction) => {
      seen.add(prediction.status);
      percent = parseProgressFromLogs(prediction)?.percentage ?? percent;
    });
    assert.match(output, /^https:\/\/.*\.mp4$/);
    assert.deepEqual([...seen], ["starting", "processing", "succeeded"]);
    assert.equal(percent, 0.2);
  });

  test("run of a version holds the create open", async () => {
    const output = await replicate.run(`${model}:${version}`, input("succeeds"));
    assert.match(output, /^https:\/\/.*\.mp4$/);
  });

  test("wait tells times, version and input of a prediction", async () => {
    const created = await replicate.predictions.create({ version, ...input("succeeds") });
    const done = await replicate.wait(created, { interval: 40 });
    assert.equal(done.status, "succeeded");
    assert.equal(done.version, version);
    assert.deepEqual(done.input, { prompt: "succeeds" });
    assert.ok(Date.parse(done.created_at) <= Date.parse(done.started_at));
    assert.ok(Date.parse(done.started_at) < Date.parse(done.completed_at));
    assert.ok(done.metrics.predict_time > 0);
    assert.equal(done.urls.get, `${baseUrl}/predictions/${done.id}`);
  });

  test("a failed prediction is an error of run and wait", async () => {
    await assert.rejects(replicate.run(model, { ...input("fails"), wait: poll }), /Prediction failed: out of memory/);
  });

  test("a canceled prediction ends the wait", async () => {
    const created = await replicate.predictions.create({ model, ...input("goes on") });
    const canceled = await replicate.predictions.cancel(created.id);
    assert.equal(canceled.status, "canceled");
    const done = await replicate.wait(created, { interval: 40 });
    assert.equal(done.status, "canceled");
  });

  test("a signal cancels what run waits for", async () => {
    const control = new AbortController();
    let last;
    await replicate.run(model, { ...input("goes on"), wait: poll, signal: control.signal }, (prediction) => {
      last = prediction;
      if (prediction.status === "processing") control.abort();
    });
    assert.equal(last.status, "canceled");
  });

  // At once: this version means to wait for Retry-After, but does not.
  test("a look that is refused is repeated", async () => {
    const created = await replicate.predictions.create({ model, ...input("busy") });
    const done = await replicate.wait(created, { interval: 40 });
    assert.equal(done.status, "succeeded");
  });

  test("pages of a list are followed to the end", async () => {
    for (let n = 0; n < 4; n++) await replicate.predictions.create({ model, ...input("succeeds") });
    const ids = new Set();
    let pages = 0;
    for await (const page of replicate.paginate(replicate.predictions.list)) {
      pages++;
      for (const prediction of page) ids.add(prediction.id);
    }
    assert.ok(pages >= 2);
    assert.ok(ids.size >= 4);
  });

  test("a wrong token and an unknown id are told by status", async () => {
    await assert.rejects(sdk("wrong").predictions.list(), (error) => error.response.status === 401);
    await assert.rejects(replicate.predictions.get("none"), (error) => error.response.status === 404);
  });
});
