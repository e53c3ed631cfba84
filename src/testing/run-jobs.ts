import { randomBytes } from "node:crypto";
import { EventEmitter } from "node:events";
import { type Job, type QueueUtils, type RunnerOptions, runOnce, type WorkerEvents } from "../index.ts";
import { clock } from "./clock.ts";

/** How a job ended. */
export interface JobOutcome {
  readonly job: Job;
  /** A permanently failed job is `failed` too; its `retryAt` is null. */
  readonly status: "succeeded" | "failed" | "snoozed" | "cancelled";
  readonly error: Error | null;
  /** When it runs again; null if it is done or cancelled, or has no attempt left. */
  readonly retryAt: Date | null;
}

export interface RunDueOptions {
  /** How many jobs run at once. Default 1, so that their order is certain. */
  readonly concurrency?: number;
  /** Throws after this many jobs, since they probably add each other endlessly. Default 1000. */
  readonly maxJobs?: number;
}

/** What a run of jobs needs to know of the queue. */
export interface RunSource {
  readonly utils: QueueUtils;
  readonly options: RunnerOptions;
  readonly escapedSchema: string;
}

/** Runs all jobs that are due, and those that they add; each job once, however soon it would be tried again. */
export async function runDueJobs(source: RunSource, options: RunDueOptions = {}): Promise<JobOutcome[]> {
  const { concurrency = source.options.concurrency ?? 1, maxJobs = 1_000 } = options;
  const marks = makeMarks();
  const ends = await runMarked(
    source,
    marks,
    { concurrency, forbiddenFlags: alsoForbid(marks.begun, source.options.forbiddenFlags) },
    maxJobs,
  );
  const outcomes = await readOutcomes(source, marks, ends);
  if (ends.length <= maxJobs) return outcomes;
  const names = [...new Set(ends.map(({ job }) => `'${job.task_identifier}'`))].join(", ");
  throw new Error(`More than ${maxJobs} jobs ran (${names}): do they add themselves? If not, raise 'maxJobs'.`);
}

/** Runs one job now, whenever it would be due, and no other. */
export async function runJob(source: RunSource, id: string): Promise<JobOutcome> {
  const marks = makeMarks();
  const found = await query(
    source,
    `update ${source.escapedSchema}._private_jobs
     set flags = coalesce(flags, '{}') || jsonb_build_object($2::text, true), run_at = least(run_at, $3::timestamptz)
     where id = $1::bigint
     returning id`,
    [id, marks.wanted, clock.now()],
  );
  if (found.length === 0) throw new Error(`There is no job ${id} to run; it may have run already.`);
  const ends = await runMarked(source, marks, { concurrency: 1, acceptedFlags: [marks.wanted] }, 1);
  const [outcome] = await readOutcomes(source, marks, ends);
  if (outcome) return outcome;
  const { reasons } = await source.utils.explainJob(id);
  const reason = reasons.find(({ kind }) => ["exhausted", "locked", "queue-held", "queue-order"].includes(kind));
  throw new Error(`Job ${id} could not be run. ${reason?.message ?? "No worker took it: is its task in the list?"}`);
}

/** Flags that no test of a user has: of the one job to run, and of jobs that have begun. */
interface Marks {
  readonly wanted: string;
  readonly begun: string;
}

function makeMarks(): Marks {
  const id = randomBytes(6).toString("hex");
  return { wanted: `hathi-testing:wanted:${id}`, begun: `hathi-testing:begun:${id}` };
}

function alsoForbid(mark: string, given: RunnerOptions["forbiddenFlags"]): () => Promise<string[]> {
  return async () => [mark, ...((typeof given === "function" ? await given() : given) ?? [])];
}

interface End {
  readonly job: Job;
  readonly error: Error | null;
  readonly status: JobOutcome["status"];
  readonly snoozedUntil: Date | undefined;
}

/**
 * A real worker claims, runs and settles. Each job that begins is marked, and with the mark it is not claimed again: a moved
 * clock would make all its retries due at once, since the database counts them from its own.
 */
async function runMarked(
  source: RunSource,
  { wanted, begun }: Marks,
  how: Pick<RunnerOptions, "concurrency" | "forbiddenFlags" | "acceptedFlags">,
  maxJobs: number,
): Promise<End[]> {
  const ends: End[] = [];
  const events = new EventEmitter() as unknown as WorkerEvents;
  events.on("job:complete", ({ job, error, outcome, runAt }) =>
    ends.push({ job, error, status: outcome === "permanentlyFailed" ? "failed" : outcome, snoozedUntil: runAt }),
  );
  const order: string[] = [];
  const beforeJobRun = async ({ job }: { readonly job: Job }): Promise<{ fail: string } | undefined> => {
    job.flags = withoutMark(job.flags, wanted);
    await query(
      source,
      `update ${source.escapedSchema}._private_jobs
       set flags = (coalesce(flags, '{}') - $2::text) || jsonb_build_object($3::text, true)
       where id = $1::bigint`,
      [job.id, wanted, begun],
    );
    order.push(job.id);
    return order.length > maxJobs ? { fail: `More than ${maxJobs} jobs ran.` } : undefined;
  };
  const { hooks } = source.options;
  await runOnce({ ...source.options, ...how, events, hooks: hooks ? [{ beforeJobRun }, hooks] : { beforeJobRun } });
  // Ends are written in another order than jobs begin.
  return ends.sort((a, b) => order.indexOf(a.job.id) - order.indexOf(b.job.id));
}

function withoutMark(flags: Job["flags"], mark: string): Job["flags"] {
  const { [mark]: _mark, ...rest } = flags ?? {};
  return Object.keys(rest).length > 0 ? rest : null;
}

/** Takes the marks away, and puts retries where a moved clock would have put them. */
async function readOutcomes(source: RunSource, { wanted, begun }: Marks, ends: readonly End[]): Promise<JobOutcome[]> {
  const kept = await query<{ id: string; run_at: Date; updated_at: Date; is_dead: boolean }>(
    source,
    `update ${source.escapedSchema}._private_jobs
     set flags = nullif(flags - $1::text - $2::text, '{}')
     where flags ?| array[$1::text, $2::text]
     returning id, run_at, updated_at, attempts >= max_attempts as is_dead`,
    [wanted, begun],
  );
  const keptById = new Map(kept.map((row) => [row.id, row]));
  const outcomes: JobOutcome[] = [];
  for (const { job, error, status, snoozedUntil } of ends) {
    const row = keptById.get(job.id);
    let retryAt = row && error && !row.is_dead ? row.run_at : null;
    if (row && retryAt && clock.offsetMs !== 0) {
      const delayMs = retryAt.getTime() - Math.max(row.updated_at.getTime(), job.run_at.getTime());
      retryAt = snoozedUntil ?? new Date(clock.now().getTime() + delayMs);
      await source.utils.rescheduleJobs([job.id], { runAt: retryAt });
    }
    outcomes.push({ job, status, error, retryAt });
  }
  return outcomes;
}

async function query<Row extends object = object>(
  { utils }: RunSource,
  text: string,
  values: readonly unknown[],
): Promise<Row[]> {
  const { rows } = await utils.withPgClient((client) => client.query(text, [...values]));
  return rows as Row[];
}
