import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { VideoAPI } from "minimax-mcp-js/build/api/video.js";
import { MinimaxAuthError, MinimaxRequestError } from "minimax-mcp-js/build/exceptions/index.js";
import { MiniMaxAPI } from "minimax-mcp-js/build/utils/api.js";
import { quicken } from "./quicken.mjs";

quicken();
// This is what MiniMax's MCP server calls for its tools.
const sdk = (apiKey = process.env.SERVER_CREDENTIAL) => new VideoAPI(new MiniMaxAPI({ apiKey, apiHost: process.env.SERVER_URL }));
const minimax = sdk();
const begin = async (prompt) => (await minimax.generateVideo({ prompt, asyncMode: true })).task_id;

describe("minimax", { concurrency: true }, () => {
  test("generateVideo waits for the URL of the file", async () => {
    const { video_url, task_id } = await minimax.generateVideo({ model: "MiniMax-Hailuo-02", prompt: "succeeds", duration: 6, resolution: "768P" });
    assert.equal(video_url, `https://files.example.test/${task_id}.mp4`);
  });

  test("a task is asked for by its id", async () => {
    const taskId = await begin("succeeds");
    const seen = new Set();
    for (let video = {}; !video.video_url; await wait(40)) {
      video = await minimax.queryVideoGeneration({ taskId });
      seen.add(video.status);
    }
    assert.deepEqual([...seen], ["Queueing", "Processing", "Success"]);
  });

  test("what failed or was filtered is an error with its reason, what was canceled has none", async () => {
    await assert.rejects(minimax.generateVideo({ prompt: "fails" }), /API Error: out of memory/);
    await assert.rejects(minimax.generateVideo({ prompt: "filtered" }), /API Error: unsafe/);
    await assert.rejects(minimax.generateVideo({ prompt: "canceled" }), /generation task failed, task ID: \d+$/);
  });

  // The SDK gives up at the first of these, also while it waits.
  test("a look that is refused, or meets a broken gateway, is an error, and the next one is not", async () => {
    for (const [prompt, text] of [["busy", /API Error: busy/], ["gateway", /Request failed \(503\)/]]) {
      const taskId = await begin(prompt);
      await wait(300);
      await assert.rejects(minimax.queryVideoGeneration({ taskId }), text);
      assert.equal((await minimax.queryVideoGeneration({ taskId })).status, "Success");
    }
  });

  test("a wrong key and an unknown id are errors", async () => {
    await assert.rejects(sdk("wrong").generateVideo({ prompt: "succeeds" }), /MinimaxAuthError/);
    await assert.rejects(sdk("wrong").queryVideoGeneration({ taskId: "none" }), (error) => error instanceof MinimaxAuthError);
    await assert.rejects(minimax.queryVideoGeneration({ taskId: "none" }), (error) => error instanceof MinimaxRequestError);
  });
});
