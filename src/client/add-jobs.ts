import { inspect } from "node:util";
import type { Database } from "../db/database.ts";
import { addJobs, addPlainJobs, collectNames, type NewJob } from "../db/statements/add.ts";
import { JobSpecError } from "../errors.ts";
import type { AddJobsFunction, Job, JobKeyMode } from "../job.ts";
import { writeGuardedJobs } from "./add-guarded.ts";
import type { AddOptions } from "./add-job.ts";
import { type CheckedSpec, toNewJob } from "./job-spec.ts";

/** Adds many jobs in one statement: all of them, or none. Rows come back in the order of the specs. */
export function makeAddJobs(database: Pick<Database, "run">, { useNodeTime }: AddOptions): AddJobsFunction {
  return async (specs, jobKeyPreserveRunAt) => {
    checkPreserveRunAt(jobKeyPreserveRunAt);
    if (!Array.isArray(specs)) throw new JobSpecError(`'addJobs' takes an array of jobs, got ${typeof specs}.`);
    const jobs = specs.map((spec: object, index) => {
      try {
        return toListedJob(spec as Record<string, unknown>, useNodeTime);
      } catch (error) {
        if (!(error instanceof JobSpecError)) throw error;
        throw new JobSpecError(`Job ${index} of ${specs.length}: ${error.message}`, { cause: error });
      }
    });
    if (jobs.length === 0) return [];
    checkKeysDiffer(jobs);
    const defaultMode = jobKeyPreserveRunAt ? "preserve_run_at" : "replace";
    if (jobs.some(({ guard }) => guard)) return await writeGuardedJobs(database, jobs, { defaultMode, useNodeTime });
    return await writeJobs(database, jobs, defaultMode);
  };
}

/** Names cannot be joined in SQL: the statement does not see tasks that it makes itself. */
export async function writeJobs(
  database: Pick<Database, "run">,
  jobs: readonly (NewJob & CheckedSpec)[],
  defaultMode: JobKeyMode,
): Promise<Job[]> {
  if (jobs.length === 0) return [];
  if (jobs.every(({ jobKey }) => jobKey === null)) return await writePlainJobs(database, jobs);
  const preserving = jobs.filter(({ jobKeyMode }) => (jobKeyMode ?? defaultMode) === "preserve_run_at");
  const preservingKeys = preserving.flatMap(({ jobKey }) => jobKey ?? []);
  const rows = await database.run(addJobs, { jobs, preservingKeys });
  return rows.map((row, index) => ({ ...row, task_identifier: jobs[index]!.identifier }));
}

/** A job without a key is always a new row, so most of it is known here and need not come back. */
async function writePlainJobs(database: Pick<Database, "run">, jobs: readonly NewJob[]): Promise<Job[]> {
  const tasks = collectNames(jobs.map(({ identifier }) => identifier));
  const queues = collectNames(jobs.map(({ queueName }) => queueName));
  const [added] = await database.run(addPlainJobs, { jobs, tasks, queues });
  const { ids, task_ids, queue_ids, added_at } = added!;
  return ids.split(",").map((id, index) => {
    const job = jobs[index]!;
    const queuePosition = queues.positions[index] ?? null;
    return {
      id,
      job_queue_id: queuePosition === null ? null : queue_ids![queuePosition - 1]!,
      task_id: task_ids[tasks.positions[index]! - 1]!,
      payload: job.payload === null ? {} : JSON.parse(job.payload),
      priority: job.priority ?? 0,
      run_at: new Date(job.runAt ?? added_at),
      attempts: 0,
      max_attempts: job.maxAttempts ?? 25,
      last_error: null,
      created_at: new Date(added_at),
      updated_at: new Date(added_at),
      key: null,
      locked_at: null,
      locked_by: null,
      revision: 0,
      flags: job.flags && Object.fromEntries(job.flags.map((flag) => [flag, true as const])),
      is_available: true,
      task_identifier: job.identifier,
    };
  });
}

const onlyForAddJob = "'unsafe_dedupe' works with 'addJob' only.";

/** Upstream's second argument is a boolean; a mode as text would count as true, whatever it says. */
function checkPreserveRunAt(value: unknown): void {
  if (value === undefined || value === null || typeof value === "boolean") return;
  throw new JobSpecError(
    "The second argument of 'addJobs' (jobKeyPreserveRunAt) must be true or false, " +
      `got ${inspect(value)}.${value === "unsafe_dedupe" ? ` ${onlyForAddJob}` : " A mode goes into each job's 'jobKeyMode'."}`,
  );
}

function toListedJob(spec: Record<string, unknown>, useNodeTime: boolean): NewJob & CheckedSpec {
  if (typeof spec !== "object" || spec === null) throw new JobSpecError(`it must be an object, got ${String(spec)}.`);
  const { identifier, payload, ...rest } = spec;
  if (rest.jobKeyMode === "unsafe_dedupe") {
    throw new JobSpecError(`'jobKeyMode' must be 'replace' or 'preserve_run_at' here: ${onlyForAddJob}`);
  }
  if (rest.cancelRunning) {
    throw new JobSpecError("'cancelRunning' cannot be set for one job of 'addJobs': add it with 'addJob'.");
  }
  return toNewJob(identifier as string, payload, rest, useNodeTime);
}

function checkKeysDiffer(jobs: readonly NewJob[]): void {
  const seen = new Set<string>();
  for (const { jobKey } of jobs) {
    if (jobKey === null) continue;
    if (seen.has(jobKey))
      throw new JobSpecError(`Job key '${jobKey}' was given more than once in one call of 'addJobs'.`);
    seen.add(jobKey);
  }
}
