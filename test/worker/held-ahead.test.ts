import { expect, test, vi } from "vitest";
import { poolDatabase } from "../../src/db/database.ts";
import { resetLocks } from "../../src/db/statements/locks.ts";
import type { RunnerOptions } from "../../src/runner/runner-options.ts";
import { freshDatabase, type JobRow, type TestDatabase } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { type HeldTask, heldTask, type Recording, recordEvents, startWorker } from "./kit.ts";

/** A worker makes the locks of long jobs young again every twenty minutes; here, it does so all the time. */
vi.mock("../../src/util/timers.ts", async (original) => {
  const timers = await original<typeof import("../../src/util/timers.ts")>();
  return {
    ...timers,
    setInterval: (task: () => void, ms: number) => timers.setInterval(task, ms === 20 * 60_000 ? 20 : ms),
  };
});

const slots = 4;
const places = {
  "behind a slow head of their queue": { queue: "q", heads: 1 },
  "without a queue, while all slots are busy": { queue: null, heads: slots },
} as const;

interface Holding {
  readonly slow: HeldTask;
  readonly recording: Recording;
  /** The payloads of the jobs that were held ahead, as they ran. */
  readonly ran: unknown[];
  /** The jobs that were held ahead. */
  readonly behind: JobRow[];
}

/** A worker that has claimed jobs with these names as keys ahead of its slots, while slow ones run. */
async function holdAhead(
  db: TestDatabase,
  names: readonly string[],
  place: keyof typeof places,
  options: RunnerOptions = {},
): Promise<Holding> {
  const { queue, heads } = places[place];
  const slow = heldTask();
  const ran: unknown[] = [];
  const recording = recordEvents();
  const claimed = new Set<string>();
  recording.events.on("claim:complete", ({ jobs }) => {
    for (const { id } of jobs) claimed.add(id);
  });
  await startWorker(
    db,
    { quick: () => undefined, slow: slow.task, behind: (payload) => void ran.push(payload) },
    { concurrency: slots, events: recording.events, ...options },
  );
  for (let round = 1; ; round++) {
    // After quick jobs the pool claims ahead, unless it had no processor at that moment: then once more.
    const before = recording.of("job:complete").length;
    await db.query("select graphile_worker.add_job('quick') from generate_series(1, 1000)");
    await recording.completed(before + 1000);
    await db.query(
      `with head as materialized (
        select graphile_worker.add_job('slow', queue_name => $1) from generate_series(1, $2::integer)
      ), held as materialized (
        select graphile_worker.add_job('behind', to_json(name), queue_name => $1, job_key => name)
        from (select count(*) from head) as added cross join unnest($3::text[]) as name
      )
      select count(*) from held`,
      [queue, heads, names],
    );
    await slow.begun(heads * round);
    const behind = (await db.jobs()).filter(({ task_identifier }) => task_identifier === "behind");
    if (behind.every(({ id }) => claimed.has(id))) return { slow, recording, ran, behind };
    await db.query("select graphile_worker.complete_jobs(array_agg(id)) from graphile_worker._private_jobs");
    for (let index = heads * (round - 1); index < heads * round; index++) slow.release(index);
    await until(async () => (await db.jobs()).length === 0, { what: "this round is over" });
    ran.length = 0;
  }
}

test.each(Object.keys(places) as (keyof typeof places)[])(
  "what removes, replaces, reschedules, completes or fails jobs that are held %s acts on them as on waiting jobs",
  async (place) => {
    const db = await freshDatabase();
    const names = ["removed", "replaced", "rescheduled", "completed", "failed", "untouched"];
    const { slow, ran, behind } = await holdAhead(db, names, place);
    const idOf = (name: string): string => behind.find(({ key }) => key === name)!.id;
    const runAt = new Date(Date.now() + 24 * 3_600_000);
    const acts = (name: string, text: string, values: unknown[] = []): Promise<unknown> =>
      until(async () => (await db.query(text, [[idOf(name)], ...values])).length === 1, { what: `a job is ${name}` });

    await db.query("select graphile_worker.remove_job('removed')");
    await db.query(
      "select graphile_worker.add_job('behind', '\"replacement\"', queue_name => $1, job_key => 'replaced')",
      [places[place].queue],
    );
    await acts("rescheduled", "select from graphile_worker.reschedule_jobs($1::bigint[], run_at => $2)", [runAt]);
    await acts("completed", "select from graphile_worker.complete_jobs($1::bigint[])");
    await acts("failed", "select from graphile_worker.permanently_fail_jobs($1::bigint[], 'by hand')");
    expect(ran).toEqual([]);

    slow.releaseAll();
    await until(async () => (await db.jobs()).length === 2, { what: "everything else is done" });
    expect(ran.toSorted()).toEqual(["replacement", "untouched"]);
    expect(await db.jobs()).toMatchObject([
      { key: "rescheduled", run_at: runAt, attempts: 0, locked_by: null },
      { key: "failed", attempts: 25, last_error: "by hand", locked_by: null },
    ]);
  },
  60_000,
);

test.each<[string, RunnerOptions]>([
  ["by default", {}],
  ["with a local queue", { preset: { worker: { localQueue: { size: 10, ttl: 5 * 60_000 } } } }],
])(
  "what waits behind a head is unlocked while it runs, and the head's locks never grow old (%s)",
  async (_how, options) => {
    const db = await freshDatabase();
    const names = ["second", "third", "fourth"];
    const { slow, recording, ran } = await holdAhead(db, names, "behind a slow head of their queue", options);
    const head = slow.started.at(-1)!;
    await until(async () => (await db.jobs()).every((job) => job.id === head.id || job.locked_at === null), {
      what: "nothing is held behind the head",
    });

    await db.query(`
      update graphile_worker._private_jobs set locked_at = now() - interval '4 hours 1 minute' where locked_at is not null;
      update graphile_worker._private_job_queues set locked_at = now() - interval '4 hours 1 minute' where locked_at is not null`);
    const locks = (): Promise<Record<string, unknown>[]> =>
      db.query(`
        select id::text, locked_by, locked_at > now() - interval '1 hour' as is_young
        from graphile_worker._private_jobs where locked_at is not null
        union all
        select queue_name, locked_by, locked_at > now() - interval '1 hour'
        from graphile_worker._private_job_queues where locked_at is not null`);
    await until(async () => (await locks()).every(({ is_young }) => is_young), { what: "the locks are young again" });
    // Another worker's four-hour rule finds nothing to free.
    await poolDatabase(db.pool, { schema: db.schema, preparedStatements: true }).run(resetLocks, { clock: null });
    expect(await locks()).toEqual([
      { id: head.id, locked_by: head.locked_by, is_young: true },
      { id: "q", locked_by: head.locked_by, is_young: true },
    ]);
    expect(ran).toEqual([]);

    slow.releaseAll();
    await until(async () => (await db.jobs()).length === 0, { what: "everything is done" });
    expect(ran).toEqual(names);
    expect(recording.of("job:lost")).toEqual([]);
  },
  60_000,
);
