import { describe, expect, test } from "vitest";
import { makeAddBatchJob } from "../../src/client/add-batch-job.ts";
import { makeAddJob } from "../../src/client/add-job.ts";
import { makeAddJobs } from "../../src/client/add-jobs.ts";
import { poolDatabase } from "../../src/db/database.ts";
import { JobSpecError } from "../../src/errors.ts";
import type { AddJobFunction, AddJobsFunction, AddJobsJobSpec, TaskSpec } from "../../src/job.ts";
import { sharedDatabase } from "../support/shared-database.ts";

const circular: { self?: unknown } = {};
circular.self = circular;

/** Everything that is refused, and what the caller is told. */
const refused: [what: string, identifier: unknown, payload: unknown, spec: object, message: string][] = [
  [
    "no identifier",
    undefined,
    {},
    {},
    "'identifier' must be a string of 1 to 128 characters (without NUL), got undefined.",
  ],
  ["an empty identifier", "", {}, {}, "'identifier' must be a string of 1 to 128 characters (without NUL), got ''."],
  [
    "a NUL in the identifier",
    "a\0b",
    {},
    {},
    "'identifier' must be a string of 1 to 128 characters (without NUL), got ",
  ],
  [
    "a long identifier",
    "i".repeat(129),
    {},
    {},
    "'identifier' must have at most 128 characters, got 129 (starting with 'iiiiiiiiiiiiiiiiiiii').",
  ],
  [
    "a BigInt in the payload",
    "t",
    { n: 1n },
    {},
    "The payload for task 't' cannot be written as JSON: Do not know how to serialize a BigInt.",
  ],
  [
    "a circular payload",
    "t",
    circular,
    {},
    "The payload for task 't' cannot be written as JSON: Converting circular structure to JSON.",
  ],
  ["a function", "t", () => 1, {}, "The payload for task 't' cannot be written as JSON: it is a function, not data."],
  ["a symbol", "t", Symbol("s"), {}, "The payload for task 't' cannot be written as JSON: it is a symbol, not data."],
  [
    "a payload whose toJSON throws",
    "t",
    {
      toJSON() {
        throw new Error("no thanks");
      },
    },
    {},
    "The payload for task 't' cannot be written as JSON: no thanks.",
  ],
  ["an unknown key", "t", {}, { retries: 3 }, "Unknown key 'retries' in the spec of a job for 't'."],
  [
    "a misspelt key",
    "t",
    {},
    { queue_name: "q" },
    "Unknown key 'queue_name' in the spec of a job for 't'. Did you mean 'queueName'?",
  ],
  [
    "another",
    "t",
    {},
    { runat: new Date() },
    "Unknown key 'runat' in the spec of a job for 't'. Did you mean 'runAt'?",
  ],
  [
    "an invalid date",
    "t",
    {},
    { runAt: new Date("x") },
    "'runAt' must be a valid Date between the years 1 and 9999, got Invalid Date.",
  ],
  [
    "a text as date",
    "t",
    {},
    { runAt: "tomorrow" },
    "'runAt' must be a valid Date between the years 1 and 9999, got 'tomorrow'.",
  ],
  [
    "a date out of range",
    "t",
    {},
    { runAt: new Date(8.64e15) },
    "'runAt' must be a valid Date between the years 1 and 9999, got +275760",
  ],
  [
    "a large priority",
    "t",
    {},
    { priority: 32768 },
    "'priority' must be a whole number from -32768 to 32767, got 32768.",
  ],
  [
    "a small priority",
    "t",
    {},
    { priority: -32769 },
    "'priority' must be a whole number from -32768 to 32767, got -32769.",
  ],
  [
    "a fractional priority",
    "t",
    {},
    { priority: 1.5 },
    "'priority' must be a whole number from -32768 to 32767, got 1.5.",
  ],
  [
    "a word as priority",
    "t",
    {},
    { priority: "high" },
    "'priority' must be a whole number from -32768 to 32767, got 'high'.",
  ],
  ["no attempts", "t", {}, { maxAttempts: 0 }, "'maxAttempts' must be a whole number from 1 to 32767, got 0."],
  [
    "too many attempts",
    "t",
    {},
    { maxAttempts: 32768 },
    "'maxAttempts' must be a whole number from 1 to 32767, got 32768.",
  ],
  ["an empty key", "t", {}, { jobKey: "" }, "'jobKey' must be a string of 1 to 512 characters (without NUL), got ''."],
  [
    "no number as key",
    "t",
    {},
    { jobKey: Number.NaN },
    "'jobKey' must be a string of 1 to 512 characters (without NUL), got NaN.",
  ],
  [
    "a date of another library that is invalid",
    "t",
    {},
    { runAt: { toISOString: () => new Date("x").toISOString() } },
    "'runAt' must be a valid Date between the years 1 and 9999, got ",
  ],
  [
    "a long key",
    "t",
    {},
    { jobKey: "k".repeat(513) },
    "'jobKey' must have at most 512 characters, got 513 (starting with ",
  ],
  [
    "an empty queue name",
    "t",
    {},
    { queueName: "" },
    "'queueName' must be a string of 1 to 128 characters (without NUL), got ''.",
  ],
  [
    "a long queue name",
    "t",
    {},
    { queueName: "🐘".repeat(129) },
    "'queueName' must have at most 128 characters, got 129",
  ],
  ["a text as flags", "t", {}, { flags: "gpu" }, "'flags' must be an array of non-empty strings, got 'gpu'."],
  [
    "a null among flags",
    "t",
    {},
    { flags: ["a", null] },
    "'flags' must be an array of non-empty strings, got [ 'a', null ].",
  ],
];

describe("a job that the database could not take", () => {
  const database = sharedDatabase();
  const open = () => poolDatabase(database().pool, { schema: "graphile_worker", preparedStatements: true });
  const settings = { useNodeTime: false };
  const jobCount = async () => (await database().jobs()).length;

  test.each(refused)(
    "%s is refused by addJob before anything is written",
    async (_, identifier, payload, spec, message) => {
      const addJob: AddJobFunction = makeAddJob(open(), settings);
      const adding = addJob(identifier as string, payload, spec as TaskSpec);
      await expect(adding).rejects.toThrow(message);
      await expect(adding).rejects.toBeInstanceOf(JobSpecError);
      expect(await jobCount()).toBe(0);
    },
  );

  test.each(refused)("%s is refused by addJobs, with its place", async (_, identifier, payload, spec, message) => {
    const addJobs: AddJobsFunction = makeAddJobs(open(), settings);
    const bad = { identifier, payload, ...spec } as AddJobsJobSpec;
    await expect(addJobs([{ identifier: "fine", payload: {} }, bad])).rejects.toThrow(`Job 1 of 2: ${message}`);
    expect(await jobCount()).toBe(0);
  });

  test.each([
    [
      "a key mode that does not exist",
      { jobKey: "k", jobKeyMode: "preserve-run-at" },
      " Did you mean 'preserve_run_at'?",
    ],
    [
      "a key mode that is no text",
      { jobKey: "k", jobKeyMode: 1 },
      "'jobKeyMode' must be 'replace', 'preserve_run_at' or",
    ],
  ])("%s is refused", async (_, spec, message) => {
    await expect(makeAddJob(open(), settings)("t", {}, spec as TaskSpec)).rejects.toThrow(message);
  });

  test("a spec that is no object is refused, and null is none", async () => {
    const addJob: AddJobFunction = makeAddJob(open(), settings);
    await expect(addJob("t", {}, "soon" as TaskSpec)).rejects.toThrow(
      "The spec of a job for 't' must be an object, got 'soon'.",
    );
    const specs = [null] as unknown as AddJobsJobSpec[];
    await expect(makeAddJobs(open(), settings)(specs)).rejects.toThrow("Job 0 of 1: it must be an object, got null.");
    const { id } = await addJob("t", {}, null as unknown as TaskSpec);
    await database().query("delete from graphile_worker._private_jobs where id = $1", [id]);
  });

  test("adding without changing what is there is for single jobs only", async () => {
    const addJobs = makeAddJobs(open(), settings);
    const spec = {
      identifier: "t",
      payload: {},
      jobKey: "k",
      jobKeyMode: "unsafe_dedupe",
    } as unknown as AddJobsJobSpec;
    await expect(addJobs([spec])).rejects.toThrow(
      "Job 0 of 1: 'jobKeyMode' must be 'replace' or 'preserve_run_at' here: 'unsafe_dedupe' works with 'addJob' only.",
    );
    await expect(addJobs([], "unsafe_dedupe" as never)).rejects.toThrow(
      "The second argument of 'addJobs' (jobKeyPreserveRunAt) must be true or false, got 'unsafe_dedupe'. " +
        "'unsafe_dedupe' works with 'addJob' only.",
    );
    await expect(addJobs([], "replace" as never)).rejects.toThrow("A mode goes into each job's 'jobKeyMode'.");
    expect(await jobCount()).toBe(0);
  });

  test("one key for two jobs of a call is refused", async () => {
    const spec = { identifier: "t", payload: {}, jobKey: "k" };
    await expect(makeAddJobs(open(), settings)([spec, spec])).rejects.toThrow(
      "Job key 'k' was given more than once in one call of 'addJobs'.",
    );
  });

  test.each([
    [[], "A batch for task 't' must be an array with at least one item, got an empty one."],
    [{ 0: 1 }, "A batch for task 't' must be an array with at least one item, got object."],
  ])("the batch %j is refused", async (items, message) => {
    const addBatchJob = makeAddBatchJob(makeAddJob(open(), settings));
    await expect(addBatchJob("t", items as unknown[])).rejects.toThrow(message);
  });

  test("null and undefined say nothing, and the longest names are fine", async () => {
    const empty = { queueName: null, runAt: undefined, jobKey: null, flags: null } as unknown as TaskSpec;
    const addJob = makeAddJob(open(), settings);
    expect(await addJob("t", {}, empty)).toMatchObject({ key: null, max_attempts: 25, flags: null });
    const longest = await addJob("🐘".repeat(128), {}, { jobKey: "é".repeat(512), queueName: "q".repeat(128) });
    expect(longest.key).toBe("é".repeat(512));
  });
});
