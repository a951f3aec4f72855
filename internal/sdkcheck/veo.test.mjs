import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { GoogleGenAI } from "@google/genai";

const sdk = (apiKey = process.env.SERVER_CREDENTIAL) =>
  new GoogleGenAI({ apiKey, httpOptions: { baseUrl: process.env.SERVER_URL } });
const veo = sdk();
const model = "veo-3.1-generate-preview";
const generate = (prompt) => veo.models.generateVideos({ model, source: { prompt } });

// This is the loop of the SDK's documents.
const until = async (operation) => {
  while (!operation.done) {
    await wait(40);
    operation = await veo.operations.getVideosOperation({ operation });
  }
  return operation;
};

describe("veo", { concurrency: true }, () => {
  test("an operation is looked at until its video is there", async () => {
    const begun = await generate("succeeds");
    assert.match(begun.name, new RegExp(`^models/${model}/operations/`));
    const { response } = await until(begun);
    assert.match(response.generatedVideos[0].video.uri, /download/);
  });

  test("a failed operation has an error, a filtered one a reason", async () => {
    assert.equal((await until(await generate("fails"))).error.message, "out of memory");
    const { response, error } = await until(await generate("filtered"));
    assert.equal(error, undefined);
    assert.equal(response.raiMediaFilteredCount, 1);
    assert.deepEqual(response.raiMediaFilteredReasons, ["unsafe"]);
  });

  test("too many calls, a broken gateway, a wrong key and an unknown id are told by status", async () => {
    await assert.rejects(async () => until(await generate("busy")), (error) => error.status === 429);
    await assert.rejects(async () => until(await generate("gateway")), (error) => error.status === 503);
    await assert.rejects(sdk("wrong").models.generateVideos({ model, source: { prompt: "succeeds" } }), (error) => error.status === 401);
    const operation = await generate("succeeds");
    operation.name += "x";
    await assert.rejects(veo.operations.getVideosOperation({ operation }), (error) => error.status === 404);
  });
});
