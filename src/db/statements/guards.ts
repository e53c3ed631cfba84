import type { DbJob, JobKeyMode } from "../../job.ts";
import { shortPatienceMs, statement } from "../statement.ts";
import type { NewJob } from "./add.ts";
import { jobColumns } from "./job-columns.ts";

/** What happens to a new job if there was one of the same key before; spans in milliseconds. */
export type Guard =
  | { readonly kind: "debounce"; readonly key: string; readonly delay: number; readonly maxWait: number | null }
  | { readonly kind: "throttle"; readonly key: string; readonly period: number }
  | { readonly kind: "singleton"; readonly key: string; readonly onConflict: string };

export type GuardedJob = NewJob & { readonly guard: Guard | null; readonly jobKeyMode: JobKeyMode | null };

export interface GuardedRow extends DbJob {
  readonly skipped: Guard["kind"] | null;
}

/** Adds jobs, some with a guard, all or none; rows come back in their order. */
export const addGuardedJobs = statement<{ jobs: readonly GuardedJob[]; clock: Date | null }, GuardedRow>({
  name: "add_guarded_jobs",
  values: ({ jobs, clock }) => [`[${jobs.map(toSpec).join(",")}]`, clock?.toISOString() ?? null],
  text: `
    select ${jobColumns}, job.skipped
    from (
      select (added.job).*, added.skipped
      from graphile_worker._hathi_add_guarded(
        array(select pg_catalog.json_populate_recordset(null::graphile_worker._hathi_guarded_spec, $1::json)),
        $2::timestamptz
      ) as added
    ) as job`,
});

/** The payload is JSON already and is put in as it is. */
function toSpec({ payload, guard, ...job }: GuardedJob): string {
  const spec = JSON.stringify({
    identifier: job.identifier,
    queue_name: job.queueName,
    run_at: job.runAt,
    max_attempts: job.maxAttempts,
    job_key: job.jobKey,
    priority: job.priority,
    flags: job.flags,
    job_key_mode: job.jobKeyMode,
    ...(guard && { guard: guard.kind, guard_key: guard.key, ...spansOf(guard) }),
  });
  return payload === null ? spec : `${spec.slice(0, -1)},"payload":${payload}}`;
}

function spansOf(guard: Guard): object {
  if (guard.kind === "singleton") return { on_conflict: guard.onConflict };
  if (guard.kind === "throttle") return { span: toInterval(guard.period) };
  return { span: toInterval(guard.delay), max_wait: guard.maxWait === null ? null : toInterval(guard.maxWait) };
}

function toInterval(ms: number): string {
  return `${ms} milliseconds`;
}

/** Deletes up to `most` guards that have expired; `seen` is smaller than that if there are no more. */
export const tidyGuards = statement<{ most: number }, { readonly seen: number }>({
  name: "tidy_guards",
  patienceMs: shortPatienceMs,
  givesWay: true,
  values: ({ most }) => [most],
  text: "select graphile_worker._hathi_tidy_guards($1::integer) as seen",
});
