import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import OpenAI, { toFile } from "openai";
import { quicken } from "./quicken.mjs";

quicken();
const sdk = (apiKey = process.env.SERVER_CREDENTIAL, options) =>
  new OpenAI({ apiKey, baseURL: `${process.env.SERVER_URL}/v1`, ...options });
const openai = sdk();
const create = (prompt, more) => openai.videos.create({ model: "sora-2", prompt, seconds: "8", ...more });

// The SDK has no helper that waits: this is the loop of its documents.
const until = async (video, seen = new Set()) => {
  for (;;) {
    seen.add(video.status);
    if (video.status === "completed") return video;
    if (video.status !== "queued" && video.status !== "in_progress") throw new Error(`${video.error.code}: ${video.error.message}`);
    await wait(40);
    video = await openai.videos.retrieve(video.id);
  }
};

describe("openai", { concurrency: true }, () => {
  test("a video is looked at until its bytes are there", async () => {
    const seen = new Set();
    const begun = await create("succeeds");
    assert.equal(begun.object, "video");
    assert.equal(begun.completed_at, null);
    await assert.rejects(openai.videos.downloadContent(begun.id), (error) => error.status === 404);
    const video = await until(begun, seen);
    assert.deepEqual([...seen], ["queued", "in_progress", "completed"]);
    assert.equal(video.progress, 100);
    assert.deepEqual([video.model, video.prompt, video.seconds, video.size], ["sora-2", "succeeds", "8", "720x1280"]);
    assert.equal(video.remixed_from_video_id, null);
    assert.ok(video.created_at <= video.completed_at);
    const bytes = await (await openai.videos.downloadContent(video.id)).arrayBuffer();
    assert.ok(bytes.byteLength > 0);
  });

  test("an image goes along in the form", async () => {
    const image = await toFile(Buffer.from([1, 2, 3]), "a.png", { type: "image/png" });
    await until(await create("succeeds", { input_reference: image }));
  });

  test("a failure has a code and a message", async () => {
    await assert.rejects(until(await create("fails")), /^Error: video_generation_failed: out of memory$/);
    await assert.rejects(until(await create("filtered")), /^Error: moderation_blocked: unsafe$/);
  });

  test("a deleted video is not known", async () => {
    const { id } = await create("goes on");
    assert.deepEqual(await openai.videos.delete(id), { id, object: "video.deleted", deleted: true });
    await assert.rejects(openai.videos.retrieve(id), (error) => error instanceof OpenAI.NotFoundError);
  });

  test("a look that is refused, or meets a broken gateway, is repeated", async () => {
    for (const prompt of ["busy", "gateway"]) await until(await create(prompt));
  });

  test("without repetitions it is an error of its status", async () => {
    const once = { maxRetries: 0 };
    for (const [prompt, kind] of [["busy", OpenAI.RateLimitError], ["gateway", OpenAI.InternalServerError]]) {
      const { id } = await create(prompt);
      await wait(300);
      await assert.rejects(openai.videos.retrieve(id, once), (error) => error instanceof kind);
    }
  });

  test("pages of a list are followed to the end", async () => {
    const made = [];
    for (let n = 0; n < 5; n++) made.push((await create("succeeds")).id);
    const first = await openai.videos.list({ limit: 2 });
    assert.equal(first.data.length, 2);
    assert.equal(first.has_more, true);
    assert.equal(first.last_id, first.data[1].id);
    const ids = [];
    for await (const video of openai.videos.list({ limit: 2 })) ids.push(video.id);
    assert.equal(new Set(ids).size, ids.length);
    assert.deepEqual(ids.filter((id) => made.includes(id)), made.toReversed());
  });

  test("a wrong key and an unknown id are told by status", async () => {
    await assert.rejects(sdk("wrong").videos.retrieve("none"), (error) => error instanceof OpenAI.AuthenticationError);
    await assert.rejects(openai.videos.retrieve("none"), (error) => error instanceof OpenAI.NotFoundError);
  });
});
