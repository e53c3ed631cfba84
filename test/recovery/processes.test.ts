import { expect, onTestFinished, test } from "vitest";
import { makeWorkerUtils } from "../../src/index.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { configuration, hasPgBouncer, noPgBouncer, sessionMode, startPgBouncer } from "../support/pgbouncer.ts";
import { startProxy } from "../support/proxy.ts";
import { until } from "../support/wait.ts";
import { startOriginal, type WorkerProcess } from "../support/worker-process.ts";
import { addJob, quickly, registered, startRecovering } from "./kit.ts";

/** Waits until the locks by which deaths are noticed at once are held. */
async function linesHeld(database: TestDatabase, count: number): Promise<void> {
  await until(async () => (await database.query("select from graphile_worker._hathi_worker_lines")).length === count, {
    what: `${count} workers hold their lines`,
  });
}

function gone(database: TestDatabase, ...ids: string[]): Promise<unknown> {
  return until(async () => (await Promise.all(ids.map((id) => database.job(id)))).every((job) => !job), {
    what: `jobs ${ids.join(", ")} are done`,
  });
}

test.each([
  ["a job", null],
  ["a job of a named queue", "line"],
])(
  "%s whose process was killed runs elsewhere within seconds, with its attempt restored",
  async (_what, queue) => {
    const database = await freshDatabase();
    const victim = await startRecovering(database);
    const id = await addJob(database, "hold", {}, { queue });
    const next = await addJob(database, "work", {}, { queue });
    await until(() => victim.started().includes(id));
    const heir = await startRecovering(database, { concurrency: 2 });
    await linesHeld(database, 2);

    victim.kill("SIGKILL");
    await until(() => heir.started().includes(id));
    expect(await database.job(id)).toMatchObject({
      attempts: 1,
      last_error: "Job recovered after worker interruption",
      locked_by: (await registered(database))[0],
    });
    heir.release();
    await gone(database, id, next);
    expect(heir.finished().toSorted()).toEqual([id, next]);
    expect(heir.output()).toMatch(/lost its connection and did not reconnect: 1 job recovered/);
  },
  120_000,
);

test("with default settings the job of a killed process runs elsewhere within seconds", async () => {
  const database = await freshDatabase();
  const defaults = { recovery: true, pollInterval: 2_000 };
  const victim = await startRecovering(database, defaults);
  const id = await addJob(database, "hold");
  await until(() => victim.started().includes(id));
  const heir = await startRecovering(database, defaults);
  await linesHeld(database, 2);
  victim.kill("SIGKILL");
  // About 6 s on a machine with nothing else to do; less than the delay for deaths that are only presumed.
  await until(() => heir.started().includes(id), { what: "the job runs elsewhere", withinMs: 29_000 });
  heir.release();
  await gone(database, id);
}, 120_000);

test("what a killed process had claimed ahead comes back too, and every job ends once", async () => {
  const database = await freshDatabase();
  const ahead = { preset: { worker: { localQueue: { size: 20 } } } };
  const held = await addJob(database, "hold");
  const rest = await Promise.all(Array.from({ length: 10 }, () => addJob(database, "work")));
  const queued = await Promise.all(Array.from({ length: 5 }, () => addJob(database, "work", {}, { queue: "q" })));
  const victim = await startRecovering(database, ahead);
  await until(async () => (await database.jobs()).every(({ locked_at }) => locked_at !== null), {
    what: "all jobs are claimed",
  });
  const heir = await startRecovering(database, ahead);
  await linesHeld(database, 2);
  expect(victim.started()).toEqual([held]);

  victim.kill("SIGKILL");
  await until(() => heir.started().includes(held));
  heir.release();
  await gone(database, held, ...rest, ...queued);
  expect(heir.finished().toSorted()).toEqual([held, ...rest, ...queued].toSorted());
  expect(await database.query("select from graphile_worker._private_job_queues where locked_at is not null")).toEqual(
    [],
  );
}, 120_000);

async function freeze(database: TestDatabase, victim: WorkerProcess, id: string): Promise<WorkerProcess> {
  await until(() => victim.started().includes(id));
  const heir = await startRecovering(database);
  await linesHeld(database, 2);
  victim.kill("SIGSTOP");
  await until(() => heir.started().includes(id), { what: "the job runs elsewhere" });
  return heir;
}

test("a process that was frozen past the threshold wakes up fenced: its jobs are aborted, and what they report changes nothing", async () => {
  const database = await freshDatabase();
  const victim = await startRecovering(database);
  const id = await addJob(database, "hold", {}, { queue: "line" });
  const [before] = await until(async () => (await registered(database)).length === 1 && (await registered(database)));
  const heir = await freeze(database, victim, id);
  expect(heir.output()).toMatch(/sent no heartbeat for too long: 1 job recovered/);

  victim.release(); // its task ends well, but the job is not its own any more
  victim.kill("SIGCONT");
  await until(() => victim.finished().includes(id));
  await victim.says(/was taken for dead/);
  await until(async () => (await registered(database)).length === 2);
  const { locked_by: owner } = (await database.job(id))!;
  expect(owner).not.toBe(before);
  expect(await registered(database)).not.toContain(before);
  expect(await database.job(id)).toMatchObject({ attempts: 1 });

  heir.release();
  await gone(database, id);
  // It goes on under its new name.
  const more = await Promise.all(Array.from({ length: 20 }, () => addJob(database, "work", { ms: 50 })));
  await gone(database, ...more);
  expect([...victim.finished(), ...heir.finished()].toSorted()).toEqual([id, id, ...more].toSorted());
  expect(victim.finished().length).toBeGreaterThan(1);
}, 120_000);

test("a job that still runs when its worker wakes up is told to stop, with the reason", async () => {
  const database = await freshDatabase();
  const victim = await startRecovering(database);
  const id = await addJob(database, "hold");
  const heir = await freeze(database, victim, id);
  heir.release();
  await gone(database, id);

  victim.kill("SIGCONT");
  await until(() => victim.aborted(id)?.startsWith("This worker was taken for dead"));
  await until(() => victim.lost().includes(id));
  victim.release();
  await until(() => victim.finished().includes(id));
  await gone(database, await addJob(database, "work"));
}, 120_000);

test("a task that computes for longer than the threshold runs exactly once, and a warning names it", async () => {
  const database = await freshDatabase();
  const recovery = { ...quickly, sweepThreshold: 2_500 };
  const busy = await startRecovering(database, { recovery });
  const id = await addJob(database, "compute", { ms: 7_000 });
  await until(() => busy.started().includes(id));
  const idle = await startRecovering(database, { recovery });
  await until(async () => {
    const [row] = await database.query<{ blocked: { jobs: string[] } | null }>(
      "select metadata -> 'blocked' as blocked from graphile_worker._private_workers where metadata ? 'blocked'",
    );
    return row?.blocked?.jobs[0] === `${id} (compute)`;
  });
  await gone(database, id);
  await busy.says(new RegExp(`The event loop was blocked for .*, most likely by job ${id} \\(compute\\)`));
  expect([busy.started(), idle.started()]).toEqual([[id], []]);
  expect(busy.output()).not.toMatch(/taken for dead/);
}, 120_000);

test("a worker whose event loop is blocked for longer than allowed is taken for dead", async () => {
  const database = await freshDatabase();
  const recovery = { ...quickly, maxEventLoopBlock: 500 };
  const busy = await startRecovering(database, { recovery });
  await linesHeld(database, 1); // whoever is to see the block is there
  const id = await addJob(database, "compute", { ms: 8_000 });
  await until(() => busy.started().includes(id));
  const other = await startRecovering(database, { recovery: { ...recovery, maxEventLoopBlock: 60_000 } });
  await until(() => other.started().includes(id));
  expect(other.output()).toMatch(new RegExp(`its event loop blocked by job ${id} \\(compute\\): 1 job recovered`));
  await gone(database, id);
  await busy.says(/was taken for dead/);
  expect(other.finished()).toEqual([id]);
}, 120_000);

test("a short cut of the network is no death", async () => {
  const database = await freshDatabase();
  const proxy = await startProxy(database.url);
  const recovery = { ...quickly, crashGrace: 8_000, sweepThreshold: 15_000 };
  const worker = await startRecovering(database, { connectionString: proxy.url, recovery });
  const id = await addJob(database, "hold");
  await until(() => worker.started().includes(id));
  const other = await startRecovering(database, { recovery });
  await linesHeld(database, 2);
  const before = await registered(database);
  const [{ now: cutAt }] = (await database.query<{ now: Date }>("select now()")) as [{ now: Date }];
  proxy.cut();
  await worker.says(/connection broke|Lost the database|heartbeat/);
  await until(
    async () =>
      (
        await database.query(
          `select from graphile_worker._private_workers as worker join graphile_worker._hathi_worker_lines as line using (id)
          where last_heartbeat_at > $1 and lost_at is null`,
          [new Date(cutAt.getTime() + 1_000)],
        )
      ).length === 2,
    { what: "both send heartbeats again" },
  );
  worker.release();
  await gone(database, id);
  expect(await registered(database)).toEqual(before);
  expect([worker.finished(), other.started()]).toEqual([[id], []]);
}, 120_000);

test("a worker that the network swallows loses its job to others, and is fenced when it comes back", async () => {
  const database = await freshDatabase();
  const proxy = await startProxy(database.url);
  const worker = await startRecovering(database, { connectionString: proxy.url });
  const id = await addJob(database, "hold");
  await until(() => worker.started().includes(id));
  const other = await startRecovering(database);
  await linesHeld(database, 2);
  proxy.blackhole();
  await until(() => other.started().includes(id));
  worker.release();
  await until(() => worker.finished().includes(id));
  proxy.restore();
  await worker.says(/was taken for dead/);
  await until(async () => (await registered(database)).length === 2);
  expect(await database.job(id)).toMatchObject({ attempts: 1 });
  other.release();
  await gone(database, id);
}, 120_000);

test("when the database was unreachable for all workers, none is taken for dead", async () => {
  const database = await freshDatabase();
  const proxy = await startProxy(database.url);
  const recovery = { ...quickly, sweepThreshold: 2_000, heartbeatInterval: 1_000, crashGrace: 8_000 };
  const workers = [
    await startRecovering(database, { connectionString: proxy.url, recovery }),
    await startRecovering(database, { connectionString: proxy.url, recovery }),
  ] as const;
  const ids = [await addJob(database, "hold"), await addJob(database, "hold")];
  await until(() => workers.every((worker) => worker.started().length === 1));
  await linesHeld(database, 2);
  const before = await registered(database);
  const silent = (longer: string): Promise<unknown[]> =>
    database.query(
      `select from graphile_worker._private_workers where last_heartbeat_at < now() - interval '${longer}'`,
    );

  proxy.blackhole();
  await until(async () => (await silent("9 s")).length === 2);
  proxy.restore();
  await until(async () => (await silent("2 s")).length === 0, { what: "both send heartbeats again" });
  for (const worker of workers) worker.release();
  await gone(database, ...ids);
  expect(await registered(database)).toEqual(before);
  expect(workers.flatMap((worker) => worker.started()).toSorted()).toEqual(ids.toSorted());
}, 120_000);

test("a job that kills its worker time after time is failed for good, and takes no innocent job with it", async () => {
  const database = await freshDatabase();
  const ahead = {
    preset: { worker: { localQueue: { size: 20 } } },
    history: "outcomes",
    taskOptions: { die: { keepResult: true } },
  } as const;
  const killer = await addJob(database, "die");
  const utils = await makeWorkerUtils({ connectionString: database.url, logger: rememberingLogger().logger });
  onTestFinished(() => utils.release());
  const wait = utils.waitForJob(killer);
  wait.catch(() => undefined);
  const innocent = await Promise.all(Array.from({ length: 5 }, () => addJob(database, "work")));
  for (let death = 1; death <= 3; death++) {
    const victim = await startRecovering(database, ahead);
    await victim.ended;
    expect(victim.started()).toContain(killer);
  }
  const survivor = await startRecovering(database, ahead);
  await gone(database, ...innocent);
  await until(async () => (await database.job(killer))?.locked_at === null);
  expect(await database.job(killer)).toMatchObject({
    attempts: 25,
    last_error: expect.stringMatching(
      /^WorkerCrashed: the worker died while this job was running alone under suspicion, 3 times in a row/,
    ),
  });
  expect(survivor.started()).not.toContain(killer);
  expect(await database.query("select from graphile_worker._hathi_job_crashes where crashes > 2")).toEqual([]);
  await expect(wait).rejects.toMatchObject({
    outcome: "permanentlyFailed",
    reason: expect.stringMatching(/^WorkerCrashed/),
  });
  // Its one attempt is in its history, and in a group of its own.
  expect(
    await database.query("select job_id, attempt, outcome, error from graphile_worker._hathi_history_attempts"),
  ).toEqual([
    { job_id: killer, attempt: 1, outcome: "permanentlyFailed", error: expect.stringMatching(/^WorkerCrashed: /) },
  ]);
  expect(
    await database.query("select task_identifier, error_class, failures from graphile_worker._hathi_error_groups"),
  ).toEqual([{ task_identifier: "die", error_class: "WorkerCrashed", failures: "1" }]);
}, 120_000);

test("a long job of an original Graphile Worker is left alone, with its queue", async () => {
  const database = await freshDatabase();
  const id = await addJob(database, "hold", {}, { queue: "theirs" });
  const original = await startOriginal({ connectionString: database.url, pollInterval: 500 });
  await until(() => original.started().includes(id));
  await database.query(
    "update graphile_worker._private_jobs set locked_at = now() - interval '3 hours 50 minutes' where id = $1",
    [id],
  );
  const ours = await startRecovering(database);
  const sweeps = async (): Promise<Date> =>
    (await database.query<{ swept_at: Date }>("select swept_at from graphile_worker._hathi_sweeps"))[0]!.swept_at;
  await until(async () => (await database.query("select from graphile_worker._hathi_sweeps")).length > 0);
  const first = await sweeps();
  await until(async () => (await sweeps()) > new Date(first.getTime() + 1_000), { what: "several sweeps went by" });
  expect(await database.job(id)).toMatchObject({ locked_by: expect.stringMatching(/^pool-/) });
  original.release();
  await gone(database, id);
  expect(ours.started()).toEqual([]);
}, 120_000);

test.for([
  { mode: "transaction", configure: configuration, pollInterval: 500 },
  // Nothing else is missing there: jobs start because they are announced.
  { mode: "session", configure: sessionMode, pollInterval: 2 ** 31 - 1 },
])(
  "through PgBouncer in $mode mode a death is known by its silence, and no lock stays behind",
  { timeout: 120_000 },
  async ({ mode, configure, pollInterval }, { skip }) => {
    skip(!hasPgBouncer, noPgBouncer);
    const database = await freshDatabase();
    const connectionString = await startPgBouncer(database.url, configure);
    const options = { connectionString, pollInterval };
    const victim = await startRecovering(database, options);
    const id = await addJob(database, "hold");
    await until(() => victim.started().includes(id));
    const heir = await startRecovering(database, options);
    await until(async () => (await registered(database)).length === 2);
    victim.kill("SIGKILL");
    await until(() => heir.started().includes(id));
    expect(heir.output()).toMatch(/sent no heartbeat for too long: 1 job recovered/);
    expect(heir.logged(/goes through a pooler/)).toHaveLength(1);
    expect(await database.query("select from graphile_worker._hathi_worker_lines")).toEqual([]);
    heir.release();
    await gone(database, id);
    const complaints = /Notifications do not arrive|Prepared statements do not survive/;
    if (mode === "session") expect([...victim.logged(complaints), ...heir.logged(complaints)]).toEqual([]);
  },
);
