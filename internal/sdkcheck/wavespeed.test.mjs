import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Client } from "wavespeed";

const sdk = (key = process.env.SERVER_CREDENTIAL) =>
  new Client(key, { baseUrl: process.env.SERVER_URL, maxConnectionRetries: 3, retryInterval: 0.04 });
const wavespeed = sdk();
const model = "wavespeed-ai/wan-2.2/t2v-480p";
const options = { pollInterval: 0.04, timeout: 20 };

describe("wavespeed", { concurrency: true }, () => {
  test("run waits until the outputs are there", async () => {
    const { outputs } = await wavespeed.run(model, { prompt: "succeeds" }, options);
    assert.match(outputs[0], /^https:\/\/.*\.mp4$/);
  });

  test("a failed prediction is an error of run", async () => {
    await assert.rejects(wavespeed.run(model, { prompt: "fails" }, options), /out of memory/);
  });

  test("runNoThrow tells what became of it", async () => {
    const { outputs, detail } = await wavespeed.runNoThrow(model, { prompt: "filtered" }, options);
    assert.equal(outputs, null);
    assert.equal(detail.status, "failed");
  });

  test("a look that is refused, or meets a broken gateway, is repeated", async () => {
    for (const prompt of ["busy", "gateway"]) assert.equal((await wavespeed.run(model, { prompt }, options)).outputs.length, 1);
  });

  test("a limit of the client's ends the wait", async () => {
    await assert.rejects(wavespeed.run(model, { prompt: "goes on" }, { pollInterval: 0.04, timeout: 0.3 }));
  });

  test("a wrong key submits nothing", async () => {
    await assert.rejects(sdk("wrong").run(model, { prompt: "succeeds" }, options), /401|credential/);
  });
});
