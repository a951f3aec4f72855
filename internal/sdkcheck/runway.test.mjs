import assert from "node:assert/strict";
import { describe, test } from "node:test";
import RunwayML, { TaskFailedError } from "@runwayml/sdk";
import { quicken } from "./quicken.mjs";

quicken();
const sdk = (apiKey = process.env.SERVER_CREDENTIAL) => new RunwayML({ apiKey, baseURL: process.env.SERVER_URL });
const runway = sdk();
const create = (promptText) => runway.textToVideo.create({ model: "veo3.1", promptText, ratio: "1280:720", duration: 4 });

describe("runway", { concurrency: true }, () => {
  test("waitForTaskOutput gives the output", async () => {
    const task = await create("succeeds").waitForTaskOutput();
    assert.equal(task.status, "SUCCEEDED");
    assert.match(task.output[0], /^https:\/\/.*\.mp4$/);
    assert.ok(Date.parse(task.createdAt) > 0);
  });

  test("an image is a task too, and is retrieved by its id", async () => {
    const { id } = await runway.imageToVideo.create({
      model: "gen4_turbo",
      promptImage: "https://files.example.test/a.png",
      promptText: "succeeds",
      ratio: "1280:720",
    });
    const seen = await runway.tasks.retrieve(id);
    assert.equal(seen.status, "THROTTLED"); // as its script has a position
    const task = await runway.tasks.retrieve(id).waitForTaskOutput();
    assert.equal(task.id, id);
  });

  test("a failed task is an error with the reason and its code", async () => {
    await assert.rejects(create("fails").waitForTaskOutput(), (error) => {
      assert.ok(error instanceof TaskFailedError);
      assert.equal(error.taskDetails.failure, "out of memory");
      assert.equal(error.taskDetails.failureCode, "INTERNAL");
      return true;
    });
    await assert.rejects(create("filtered").waitForTaskOutput(), (error) => error.taskDetails.failureCode.startsWith("SAFETY."));
  });

  test("a canceled task is not known any more", async () => {
    const { id } = await create("goes on");
    await runway.tasks.delete(id);
    await assert.rejects(runway.tasks.retrieve(id), (error) => error.status === 404);
  });

  test("a look that is refused, or meets a broken gateway, is repeated", async () => {
    for (const prompt of ["busy", "gateway"]) {
      const task = await create(prompt).waitForTaskOutput();
      assert.equal(task.status, "SUCCEEDED");
    }
  });

  test("a wrong key, an unknown id and a missing version are told by status", async () => {
    await assert.rejects(sdk("wrong").tasks.retrieve("none"), (error) => error.status === 401);
    await assert.rejects(runway.tasks.retrieve("none"), (error) => error.status === 404);
    await assert.rejects(runway.tasks.retrieve("none", { headers: { "X-Runway-Version": null } }), (error) => error.status === 400);
  });
});
