import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { parseCronItems } from "../../src/cron/parse-cron-item.ts";
import { compileSharedOptions } from "../../src/runner/compile.ts";
import { findCronItems } from "../../src/runner/cron-items.ts";
import type { RunnerOptions } from "../../src/runner/runner-options.ts";
import { rememberingLogger } from "../support/log.ts";

async function find(options: RunnerOptions) {
  const { logger, lines } = rememberingLogger();
  const read = await findCronItems(compileSharedOptions<RunnerOptions>({ ...options, logger }));
  return { items: read(), read, lines };
}

test.each([
  ["directly", (crontabFile: string): RunnerOptions => ({ crontabFile })],
  ["in a preset", (crontabFile: string): RunnerOptions => ({ preset: { worker: { crontabFile } } })],
])("a crontab that was named %s and does not exist is reported", async (_, optionsFor) => {
  const { items, lines } = await find(optionsFor("/nowhere/crontab"));
  expect(items).toEqual([]);
  expect(lines).toEqual([
    { level: "warning", message: "Failed to read crontab file '/nowhere/crontab'; cron is disabled" },
  ]);
});

test("a default crontab that does not exist is nothing to talk about", async () => {
  const { items, lines } = await find({});
  expect(items).toEqual([]);
  expect(lines.filter(({ level }) => level !== "debug")).toEqual([]);
});

test("a crontab that cannot be read is an error in the log, and cron is disabled", async () => {
  const folder = await mkdtemp(join(tmpdir(), "hathi-crontab-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const { items, lines } = await find({ crontabFile: folder });
  expect(items).toEqual([]);
  expect(lines).toMatchObject([
    { level: "error", message: expect.stringMatching(/^Failed to read crontab file '.*': EISDIR.*cron is disabled$/) },
  ]);
});

test("null leaves crontab, parsed items and files out", async () => {
  const nothing = { crontab: null, parsedCronItems: null, crontabFile: null } as unknown as RunnerOptions;
  expect((await find(nothing)).items).toEqual([]);
});

test("two parsed items with one identifier are doubtful; in 'cron' they are refused", async () => {
  const parsedCronItems = parseCronItems([
    { task: "a", match: "* * * * *" },
    { task: "a", match: "5 * * * *" },
  ]);
  const { items, lines } = await find({ parsedCronItems });
  expect(items).toHaveLength(2);
  expect(lines).toMatchObject([
    { level: "warning", message: expect.stringContaining("Two recurring jobs have the identifier 'a': when both") },
  ]);
  const refusal = "Two recurring jobs have the identifier 'a'; give one of them another id.";
  const [first] = parsedCronItems;
  await expect(find({ parsedCronItems: [first!], cron: ["5 * * * * a"] })).rejects.toThrow(refusal);
  await expect(find({ cron: [first!, "5 * * * * a"] })).rejects.toThrow(refusal);
});

test("the caller's parsed items stay as they are beside 'cron', and what the caller changes in them counts", async () => {
  const parsedCronItems = parseCronItems([{ task: "a", match: "* * * * *" }]);
  const options: RunnerOptions = { parsedCronItems, cron: ["5 * * * * b"] };
  const tasks = (items: readonly { task: string }[]): string[] => items.map(({ task }) => task);
  const { items, read } = await find(options);
  expect(tasks(items)).toEqual(["a", "b"]);
  expect(tasks(parsedCronItems)).toEqual(["a"]);
  parsedCronItems.push(...parseCronItems([{ task: "c", match: "* * * * *" }]));
  expect(tasks(read())).toEqual(["a", "c", "b"]);
  // The same options serve any number of workers.
  expect(tasks((await find(options)).items)).toEqual(["a", "c", "b"]);
});
