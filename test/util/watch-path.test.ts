import { expect, onTestFinished, test } from "vitest";
import { watchPath } from "../../src/util/watch-path.ts";
import { makeProject } from "../support/project.ts";
import { until } from "../support/wait.ts";

test("a change between the making of a watch and its following is reported", async () => {
  const project = await makeProject({ "a/one": "1" });
  const watch = await watchPath(project.folder);
  onTestFinished(() => watch.stop());
  await project.write("a/one", "2");
  let calls = 0;
  watch.follow(async () => void calls++);
  await until(() => calls === 1, { what: "the change is reported" });
});

test("changes, additions and removals are each reported once, also of a path that was not there", async () => {
  const project = await makeProject();
  const watch = await watchPath(project.path("tasks"));
  onTestFinished(() => watch.stop());
  let calls = 0;
  watch.follow(async () => void calls++);
  const steps = [
    () => project.write("tasks/deep/er/file", "1"),
    () => project.write("tasks/deep/er/file", "22"),
    () => project.write("tasks/other", "x", { executable: true }),
    () => project.remove("tasks/other"),
  ];
  for (const [index, step] of steps.entries()) {
    await step();
    await until(() => calls === index + 1, { what: `change ${index + 1} is reported` });
  }
  expect(calls).toBe(steps.length);
});

test("calls never overlap, and stop waits for the one that is under way", async () => {
  const project = await makeProject({ file: "0" });
  const watch = await watchPath(project.folder);
  let active = 0;
  let most = 0;
  let ended = 0;
  watch.follow(async () => {
    most = Math.max(most, ++active);
    await project.write("file", `changed while handling ${ended}`);
    active--;
    ended++;
  });
  await project.write("file", "1");
  await until(() => ended >= 3, { what: "its own changes are reported too" });
  await watch.stop();
  const atStop = ended;
  await project.write("file", "after the end");
  expect({ most, active, ended }).toEqual({ most: 1, active: 0, ended: atStop });
});
