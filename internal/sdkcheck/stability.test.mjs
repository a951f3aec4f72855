import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import stability from "stability-ai";

// The SDK takes no base URL, but each request passes the hooks of its axios.
const { resolve } = createRequire(import.meta.url);
const axios = createRequire(resolve("stability-ai"))("axios");
axios.interceptors.request.use((config) => {
  assert.equal(new URL(config.url).origin, "https://api.stability.ai");
  config.url = config.url.replace("https://api.stability.ai", process.env.SERVER_URL);
  return config;
});

// It leaves the videos in the directory for temporary files.
process.env.TMPDIR = mkdtempSync(join(tmpdir(), "stability-"));
after(() => rmSync(process.env.TMPDIR, { recursive: true }));

const StabilityAI = stability.default;
const sdk = (key = process.env.SERVER_CREDENTIAL) => new StabilityAI(key).v2beta.stableVideo;
const video = sdk();

// There is no prompt: the name of the image says what becomes of it.
const begin = async (name, client = video) => {
  const image = join(process.env.TMPDIR, `${name}.png`);
  writeFileSync(image, "an image");
  return (await client.imageToVideo(image)).id;
};

// The SDK has no helper that waits.
const until = async (id, seen = new Set()) => {
  for (;;) {
    const result = await video.imageToVideoResult(id);
    if ("filepath" in result) return result;
    assert.equal(result.id, id);
    seen.add(result.status);
    await wait(40);
  }
};

describe("stability", { concurrency: true }, () => {
  test("a result is asked for until its video is there", async () => {
    const id = await begin("succeeds");
    assert.match(id, /^[0-9a-f]{64}$/);
    const seen = new Set();
    const result = await until(id, seen);
    assert.deepEqual([...seen], ["in-progress"]);
    assert.equal(result.contentFiltered, false);
    assert.equal(result.seed, 1);
    assert.equal(readFileSync(result.filepath).toString("latin1", 4, 8), "ftyp");
  });

  test("a filtered video is there too, and said to be filtered", async () => {
    const result = await until(await begin("filtered"));
    assert.equal(result.contentFiltered, true);
    assert.ok(readFileSync(result.filepath).length > 0);
  });

  test("what was canceled is not known any more", async () => {
    await assert.rejects(until(await begin("canceled")), (error) => error.name === "StabilityAIRecordNotFoundError");
  });

  test("a look that is refused, or meets a broken gateway, is an error, and the next one is not", async () => {
    for (const [name, text] of [["busy", /"busy"/], ["gateway", /"service unavailable"/]]) {
      const id = await begin(name);
      await wait(300);
      await assert.rejects(video.imageToVideoResult(id), text);
      assert.equal((await until(id)).contentFiltered, false);
    }
  });

  test("a wrong key and an unknown id are told by name", async () => {
    await assert.rejects(begin("succeeds", sdk("wrong")), (error) => error.name === "StabilityAIUnauthorizedError");
    await assert.rejects(video.imageToVideoResult("none"), (error) => error.name === "StabilityAIRecordNotFoundError");
  });
});
