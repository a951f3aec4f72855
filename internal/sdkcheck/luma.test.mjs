import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import LumaAI from "lumaai";

const sdk = (authToken = process.env.SERVER_CREDENTIAL) =>
  new LumaAI({ authToken, baseURL: `${process.env.SERVER_URL}/dream-machine/v1` });
const luma = sdk();
const create = (prompt) => luma.generations.create({ model: "ray-2", prompt });

// The SDK has no helper that waits: this is the loop of its documents.
const until = async ({ id }, seen = new Set()) => {
  for (;;) {
    const generation = await luma.generations.get(id);
    seen.add(generation.state);
    if (generation.state === "completed") return generation;
    if (generation.state === "failed") throw new Error(`Generation failed: ${generation.failure_reason}`);
    await wait(40);
  }
};

describe("luma", { concurrency: true }, () => {
  test("a generation is looked at until its video is there", async () => {
    const seen = new Set();
    const generation = await until(await create("succeeds"), seen);
    assert.match(generation.assets.video, /^https:\/\/.*\.mp4$/);
    assert.deepEqual([...seen], ["queued", "dreaming", "completed"]);
    assert.equal(generation.model, "ray-2");
    assert.equal(generation.request.prompt, "succeeds");
    assert.ok(Date.parse(generation.created_at) > 0);
  });

  test("videos and images are generations too", async () => {
    await until(await luma.generations.video.create({ model: "ray-2", prompt: "succeeds" }));
    await until(await luma.generations.image.create({ model: "photon-1", prompt: "succeeds" }));
  });

  test("a failure has its reason", async () => {
    await assert.rejects(until(await create("fails")), /Generation failed: out of memory/);
    await assert.rejects(until(await create("filtered")), /moderation/);
  });

  test("a deleted generation is not known", async () => {
    const { id } = await create("goes on");
    await luma.generations.delete(id);
    await assert.rejects(luma.generations.get(id), (error) => error.status === 404);
  });

  test("a look that is refused, or meets a broken gateway, is repeated", async () => {
    for (const prompt of ["busy", "gateway"]) await until(await create(prompt));
  });

  test("a list is in pages", async () => {
    for (let n = 0; n < 4; n++) await create("succeeds");
    const first = await luma.generations.list({ limit: 3, offset: 0 });
    const second = await luma.generations.list({ limit: 3, offset: 3 });
    assert.equal(first.has_more, true);
    const ids = new Set([...first.generations, ...second.generations].map((generation) => generation.id));
    assert.ok(ids.size > 3);
  });

  test("a wrong key and an unknown id are told by status", async () => {
    await assert.rejects(sdk("wrong").generations.get("none"), (error) => error.status === 401);
    await assert.rejects(luma.generations.get("none"), (error) => error.status === 404);
  });
});
