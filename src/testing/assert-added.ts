import { AssertionError } from "node:assert";
import { inspect } from "node:util";
import {
  type AnyTaskDefinition,
  isTaskDefinition,
  type PresentJob,
  type QueueUtils,
  type TaskInput,
} from "../index.ts";
import { findDifference } from "./find-difference.ts";

/** A job that waits in the database, with its payload. */
export type KeptJob = PresentJob;

/** A task's name, or its definition. */
export type TestedTask = string | AnyTaskDefinition;

type Part<Value> = Value extends readonly (infer Item)[]
  ? readonly Part<Item>[]
  : Value extends object
    ? { readonly [Key in keyof Value]?: Part<Value[Key]> }
    : Value;

/** What a job must look like; what is left out does not matter. */
export interface ExpectedJob<Task extends TestedTask = string> {
  /** The payload has at least this; values may be matchers such as `expect.any(String)`. */
  readonly payload?: Task extends AnyTaskDefinition ? Part<TaskInput<Task>> : unknown;
  readonly key?: string | null;
  readonly queueName?: string | null;
  /** A moment, give or take five seconds; or bounds. */
  readonly runAt?: Date | { readonly after?: Date; readonly before?: Date };
  readonly priority?: number;
  readonly maxAttempts?: number;
  readonly flags?: readonly string[];
}

/** All jobs that wait for a task (or for any), oldest first, with their payloads. */
export async function findJobs(utils: QueueUtils, task?: TestedTask): Promise<KeptJob[]> {
  const jobs: KeptJob[] = [];
  for (let after: string | null | undefined; after !== null; ) {
    const page = await utils.listJobs({ task: task && nameOf(task) }, { after, limit: 1000 });
    const kept = await Promise.all(page.jobs.map(({ id }) => utils.getJob(id)));
    jobs.push(...kept.filter((job) => job !== null && job.state !== "finished"));
    after = page.next;
  }
  return jobs.reverse();
}

/** Finds the job that is as expected, or says what there is instead. */
export async function assertJobAdded<Task extends TestedTask>(
  utils: QueueUtils,
  task: Task,
  expected: ExpectedJob<Task> = {},
): Promise<KeptJob> {
  const jobs = await findJobs(utils, task);
  const found = jobs.find((job) => differenceOf(job, expected) === undefined);
  if (found) return found;
  const others = jobs.map((job) => `\n  job ${job.id}: ${differenceOf(job, expected)}`);
  const instead = jobs.length > 0 ? `Those that wait are different:${others.join("")}` : await describeOthers(utils);
  const message = `No job of '${nameOf(task)}' as expected was added. ${instead}`;
  throw new AssertionError({ message, actual: jobs.map(toExpected), expected, operator: "assertJobAdded" });
}

/** Fails if there is a job that is as described. */
export async function assertNoJobAdded<Task extends TestedTask>(
  utils: QueueUtils,
  task: Task,
  unexpected: ExpectedJob<Task> = {},
): Promise<void> {
  const jobs = await findJobs(utils, task);
  const found = jobs.find((job) => differenceOf(job, unexpected) === undefined);
  if (!found) return;
  const message = `Job ${found.id} of '${nameOf(task)}' was added, with the payload ${inspect(found.payload)}.`;
  throw new AssertionError({ message, actual: toExpected(found), operator: "assertNoJobAdded" });
}

function nameOf(task: TestedTask): string {
  return isTaskDefinition(task) ? task.identifier : task;
}

async function describeOthers(utils: QueueUtils): Promise<string> {
  const names = new Set((await findJobs(utils)).map((job) => job.task_identifier));
  if (names.size === 0) return "No job waits at all.";
  return `There are only jobs of ${[...names].map((name) => `'${name}'`).join(", ")}.`;
}

function toExpected(job: KeptJob): Required<ExpectedJob> {
  return {
    payload: job.payload,
    key: job.key,
    queueName: job.queue_name,
    runAt: job.run_at,
    priority: job.priority,
    maxAttempts: job.max_attempts,
    flags: Object.keys(job.flags ?? {}),
  };
}

function differenceOf(job: KeptJob, { runAt, ...expected }: ExpectedJob<never>): string | undefined {
  const actual = toExpected(job);
  const sorted = { ...actual, flags: [...actual.flags].sort() };
  const wanted = { ...expected, ...(expected.flags && { flags: [...expected.flags].sort() }) };
  return findDifference(wanted, sorted) ?? (runAt && differenceInTime(runAt, job.run_at));
}

const toleranceMs = 5_000;

function differenceInTime(expected: NonNullable<ExpectedJob["runAt"]>, actual: Date): string | undefined {
  const at = actual.getTime();
  const isDate = expected instanceof Date;
  const after = isDate ? expected.getTime() - toleranceMs : (expected.after?.getTime() ?? -Infinity);
  const before = isDate ? expected.getTime() + toleranceMs : (expected.before?.getTime() ?? Infinity);
  if (at >= after && at <= before) return undefined;
  return `runAt is ${actual.toISOString()}, expected ${isDate ? expected.toISOString() : inspect(expected)}`;
}
