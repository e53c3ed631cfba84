import type { TestDatabase } from "../support/database.ts";
import type { WorkerProcess } from "../support/worker-process.ts";

/** What happened to a job's row, in the order in which it did: each entry is made while the row is locked. */
interface Entry {
  readonly seq: number;
  readonly what: "claim" | "return" | "cancel";
  readonly job_id: string;
  readonly pool: string | null;
  readonly attempt: number;
  /** The application name of the connection. */
  readonly process: string;
}

/** Lets the database itself write down who claims jobs, who returns them unused, and when they are cancelled. */
export async function logClaims(db: TestDatabase): Promise<void> {
  await db.pool.query(`
    create table public.claim_log (seq serial, what text, job_id bigint, pool text, attempt integer, process text);
    create function public.log_claim() returns trigger language plpgsql as $$
    begin
      if new.locked_by is distinct from old.locked_by and new.locked_by <> 'hathi-recovery' then
        insert into public.claim_log (what, job_id, pool, attempt, process)
        values ('claim', new.id, new.locked_by, new.attempts, current_setting('application_name'));
      elsif new.locked_by is null and old.locked_by is not null and new.attempts < old.attempts then
        insert into public.claim_log (what, job_id, pool, attempt, process)
        values ('return', new.id, old.locked_by, old.attempts, current_setting('application_name'));
      end if;
      return null;
    end $$;
    create function public.log_cancel() returns trigger language plpgsql as $$
    begin
      insert into public.claim_log (what, job_id) values ('cancel', new.job_id);
      return null;
    end $$;
    create trigger log_claim after update on graphile_worker._private_jobs for each row execute function public.log_claim();
    create trigger log_cancel after insert on graphile_worker._hathi_job_cancellations
      for each row execute function public.log_cancel();`);
}

/** The same database under a name that the log tells apart. */
export function urlOf(db: TestDatabase, process: string): string {
  const url = new URL(db.url);
  url.searchParams.set("application_name", process);
  return url.href;
}

/**
 * What should not have been, by the rule for jobs that are cancelled, or are not: nobody claims a job after its cancel was committed, and a claim
 * is started at most once, and never if its own process has returned it. So a cancelled job starts only where it was claimed before, and had not
 * started. That may be more than one pool: a forced unlock takes a job away from a living pool that does not hear of it before it starts the job.
 */
export async function trespasses(db: TestDatabase, workers: readonly WorkerProcess[]): Promise<string[]> {
  const log = await db.query<Entry & Record<string, unknown>>("select * from public.claim_log order by seq");
  const keyOf = (id: string, pool: string | null, attempt: number): string => `${id} ${pool} ${attempt}`;
  const cancelledAt = new Map<string, number>();
  const claims = new Map<string, string[]>();
  const found: string[] = [];
  for (const { seq, what, job_id, pool, attempt, process } of log) {
    const key = keyOf(job_id, pool, attempt);
    const owners = claims.get(key) ?? [];
    if (what === "cancel") cancelledAt.set(job_id, seq);
    else if (what === "claim") claims.set(key, [...owners, process]);
    else if (owners.includes(process)) claims.set(key, owners.toSpliced(owners.indexOf(process), 1));
    if (what === "claim" && cancelledAt.has(job_id))
      found.push(`job ${job_id} was claimed by ${pool} after its cancel`);
  }
  for (const { id, pool, attempt } of workers.flatMap((worker) => worker.starts())) {
    const key = keyOf(id, pool, attempt);
    if (!claims.get(key)?.length) found.push(`job ${id} was started by ${pool} as attempt ${attempt} without a claim`);
    claims.set(key, claims.get(key)?.slice(1) ?? []);
  }
  return found.map((text) => `${text}: ${JSON.stringify(history(text, log, workers))}`);
}

function history(text: string, log: readonly Entry[], workers: readonly WorkerProcess[]): unknown {
  const id = text.split(" ")[1];
  const starts = workers.flatMap((worker) => worker.starts()).filter((start) => start.id === id);
  return { log: log.filter(({ job_id }) => job_id === id), starts };
}
