import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { KlingAPI, KlingAPIError } from "kling-api";
import { quicken } from "./quicken.mjs";

quicken();
// This is the client of others than Kling, which publishes none for JavaScript. It
// takes a base URL with https alone, but shows its HTTP client. Its keys make a
// token, which sdkcheck verifies.
const sdk = (secretKey = process.env.SERVER_CREDENTIAL) => {
  const api = new KlingAPI({ accessKey: "access-key-of-sdkcheck", secretKey });
  api.client.defaults.baseURL = process.env.SERVER_URL;
  return api;
};
const kling = sdk();
const options = { interval: 40, timeout: 10_000, showSpinner: false };
const begin = async (prompt, api = kling) => (await api.textToVideo({ prompt, duration: "5" })).data.task_id;
const query = (id) => kling.queryTextToVideoTask(id);
const until = (id, more) => kling.waitForVideoResult(id, query, { ...options, ...more });

describe("kling", { concurrency: true }, () => {
  test("waitForVideoResult gives the video", async () => {
    const begun = await kling.textToVideo({ prompt: "succeeds" });
    assert.deepEqual([begun.code, begun.data.task_status], [0, "submitted"]);
    const { data } = await until(begun.data.task_id);
    assert.equal(data.task_status, "succeed");
    assert.match(data.task_result.videos[0].url, /^https:\/\/.*\.mp4$/);
    assert.ok(data.task_result.videos[0].id && data.task_result.videos[0].duration);
    assert.ok(data.created_at < data.updated_at);
  });

  test("a task is known to the endpoint that made it, and to no other", async () => {
    const { data } = await kling.omniVideo({ prompt: "succeeds" });
    assert.equal((await kling.queryOmniVideoTask(data.task_id)).data.task_id, data.task_id);
    await assert.rejects(query(data.task_id), (error) => error.httpStatus === 404 && error.code === 1203);
  });

  test("what failed or was filtered is an error with its reason", async () => {
    await assert.rejects(until(await begin("fails")), /^KlingAPIError: out of memory$/);
    await assert.rejects(until(await begin("filtered")), /risk control.*unsafe/);
  });

  test("a limit of the client's ends the wait", async () => {
    await assert.rejects(until(await begin("goes on"), { timeout: 300 }), /Polling timeout/);
  });

  test("a look that meets a broken gateway is repeated, a refused one is not", async () => {
    await until(await begin("gateway"));
    const id = await begin("busy");
    await assert.rejects(until(id), (error) => error instanceof KlingAPIError && error.httpStatus === 429 && error.code === 1302);
    await until(id);
  });

  test("a wrong secret and an unknown id are told by status and code", async () => {
    await assert.rejects(begin("succeeds", sdk("wrong")), (error) => error.httpStatus === 401 && error.code === 1000);
    await assert.rejects(query("none"), (error) => error.httpStatus === 404 && error.code === 1203);
  });
});
