import { expect, test } from "vitest";
import type { JobRow, TestDatabase } from "../support/database.ts";
import { bothWays } from "./both-ways.ts";

/** Calls a function with named arguments, the way every client does. */
async function call(database: TestDatabase, name: string, args: Record<string, unknown> = {}): Promise<JobRow[]> {
  const entries = Object.entries(args);
  const list = entries.map(([key], index) => `${key} => $${index + 1}`).join(", ");
  return database.query<JobRow>(
    `select * from graphile_worker.${name}(${list})`,
    entries.map(([key, value]) => (key === "payload" && value !== null ? JSON.stringify(value) : value)),
  );
}

async function addJob(database: TestDatabase, identifier: string, args: Record<string, unknown> = {}): Promise<JobRow> {
  const [row] = await call(database, "add_job", { identifier, ...args });
  return row!;
}

/** `add_jobs` with specs as rows; what a spec leaves out is NULL. */
async function addJobs(
  database: TestDatabase,
  specs: ReadonlyArray<Record<string, unknown>>,
  preserve = false,
): Promise<JobRow[]> {
  return database.query<JobRow>(
    `select * from graphile_worker.add_jobs(
      array(select json_populate_record(null::graphile_worker.job_spec, spec) from json_array_elements($1) as spec), $2)`,
    [JSON.stringify(specs), preserve],
  );
}

/** Locks a job as a worker does when it claims it. */
async function claim(database: TestDatabase, id: string, age = "0 seconds", by = "pool-1"): Promise<void> {
  await database.query(
    `update graphile_worker._private_jobs set attempts = attempts + 1, locked_at = now() - $2::interval, locked_by = $3
     where id = $1`,
    [id, age, by],
  );
}

async function failForGood(database: TestDatabase, id: string): Promise<void> {
  await database.query(
    "update graphile_worker._private_jobs set attempts = max_attempts, last_error = 'no' where id = $1",
    [id],
  );
}

async function codeOf(promise: Promise<unknown>): Promise<string | undefined> {
  return promise.then(
    () => undefined,
    (error: { code?: string }) => error.code,
  );
}

const later = new Date("2035-01-01T00:00:00Z");
const evenLater = new Date("2036-01-01T00:00:00Z");

bothWays(({ fresh, isOurs }) => {
  test("add_job fills every gap with its default", async () => {
    const database = await fresh();
    const added = await addJob(database, "greet");
    const job = await database.job(added.id);
    expect(job).toMatchObject({
      task_identifier: "greet",
      queue_name: null,
      payload: {},
      priority: 0,
      attempts: 0,
      max_attempts: 25,
      last_error: null,
      key: null,
      locked_at: null,
      locked_by: null,
      revision: 0,
      flags: null,
      is_available: true,
    });
    expect(job?.run_at).toEqual(job?.created_at);
    expect(added.id).toBe(job?.id);
  });

  test("add_job takes every argument, and gives the row that was written", async () => {
    const database = await fresh();
    const added = await addJob(database, "greet", {
      payload: { name: "Ada", nested: [1, null] },
      queue_name: "greetings",
      run_at: later,
      max_attempts: 3,
      job_key: "ada",
      priority: -5,
      flags: ["a", "b"],
    });
    const job = await database.job(added.id);
    expect(job).toMatchObject({
      queue_name: "greetings",
      payload: { name: "Ada", nested: [1, null] },
      run_at: later,
      max_attempts: 3,
      key: "ada",
      priority: -5,
      flags: { a: true, b: true },
    });
    const { task_identifier: _task, queue_name: _queue, ...row } = job!;
    expect(added).toEqual(row);
  });

  test("add_job can be called with positions instead of names", async () => {
    const database = await fresh();
    const [row] = await database.query<JobRow>(
      "select * from graphile_worker.add_job('greet', '{\"a\":1}'::json, 'q', $1::timestamptz, 2, 'k', 7, array['f'], 'replace')",
      [later],
    );
    expect(row).toMatchObject({ payload: { a: 1 }, run_at: later, max_attempts: 2, key: "k", priority: 7 });
  });

  test("an empty list of flags is stored as none", async () => {
    const database = await fresh();
    expect((await addJob(database, "greet", { flags: [] })).flags).toBeNull();
  });

  test("without a key the mode is not looked at", async () => {
    const database = await fresh();
    expect(await addJob(database, "greet", { job_key_mode: "nonsense" })).toMatchObject({ key: null });
  });

  test("with a key, a mode of NULL means replace and an unknown mode is GWBKM", async () => {
    const database = await fresh();
    await addJob(database, "greet", { job_key: "k", payload: { n: 1 } });
    const second = await addJob(database, "greet", { job_key: "k", payload: { n: 2 }, job_key_mode: null });
    expect(second).toMatchObject({ payload: { n: 2 }, revision: 1 });
    expect(await codeOf(addJob(database, "greet", { job_key: "k", job_key_mode: "nonsense" }))).toBe("GWBKM");
  });

  test("replace overwrites everything of a waiting job, and resets what is left out", async () => {
    const database = await fresh();
    const first = await addJob(database, "greet", {
      payload: { n: 1 },
      queue_name: "q",
      run_at: later,
      max_attempts: 3,
      job_key: "k",
      priority: 4,
      flags: ["f"],
    });
    await database.query("update graphile_worker._private_jobs set attempts = 2, last_error = 'oops'");
    const second = await addJob(database, "wave", { job_key: "k" });
    expect(second.id).toBe(first.id);
    const job = await database.job(first.id);
    expect(job).toMatchObject({
      task_identifier: "wave",
      queue_name: null,
      payload: {},
      max_attempts: 25,
      priority: 0,
      flags: null,
      attempts: 0,
      last_error: null,
      revision: 1,
    });
    expect(job?.run_at.getTime()).toBeLessThan(later.getTime());
    expect(job?.created_at).toEqual(first.created_at);
    expect(job?.updated_at.getTime()).toBeGreaterThan(first.updated_at.getTime());
  });

  test("preserve_run_at keeps the time of a job that was never tried, and of no other", async () => {
    const database = await fresh();
    const first = await addJob(database, "greet", { job_key: "k", run_at: later });
    const preserving = { job_key: "k", run_at: evenLater, job_key_mode: "preserve_run_at", payload: { n: 2 } };
    expect(await addJob(database, "greet", preserving)).toMatchObject({
      run_at: later,
      payload: { n: 2 },
      revision: 1,
    });
    await database.query("update graphile_worker._private_jobs set attempts = 1 where id = $1", [first.id]);
    expect(await addJob(database, "greet", preserving)).toMatchObject({ run_at: evenLater, attempts: 0, revision: 2 });
  });

  test("add_jobs preserves the time when its second argument says so", async () => {
    const database = await fresh();
    await addJobs(database, [{ identifier: "greet", job_key: "k", run_at: later }]);
    const [kept] = await addJobs(database, [{ identifier: "greet", job_key: "k", run_at: evenLater }], true);
    expect(kept).toMatchObject({ run_at: later, revision: 1 });
    const [moved] = await addJobs(database, [{ identifier: "greet", job_key: "k", run_at: evenLater }]);
    expect(moved).toMatchObject({ run_at: evenLater, revision: 2 });
  });

  test("an array is appended to an array, old before new; anything else replaces", async () => {
    const database = await fresh();
    const add = async (payload: unknown): Promise<unknown> =>
      (await addJob(database, "greet", { job_key: "k", payload })).payload;
    expect(await add([1, { a: 1 }])).toEqual([1, { a: 1 }]);
    expect(await add([2])).toEqual([1, { a: 1 }, 2]);
    expect(await add({ b: 2 })).toEqual({ b: 2 });
    expect(await add([3])).toEqual([3]);
    expect(await add(null)).toEqual({});
  });

  test.each(["replace", "preserve_run_at"])("%s leaves a running job to finish and makes a new one", async (mode) => {
    const database = await fresh();
    const running = await addJob(database, "greet", { job_key: "k", payload: { n: 1 } });
    await claim(database, running.id);
    const added = await addJob(database, "greet", { job_key: "k", payload: { n: 2 }, job_key_mode: mode });
    expect(added.id).not.toBe(running.id);
    expect(added).toMatchObject({ key: "k", revision: 0, payload: { n: 2 } });
    expect(await database.job(running.id)).toMatchObject({
      key: null,
      attempts: 25,
      max_attempts: 25,
      locked_by: "pool-1",
      payload: { n: 1 },
    });
  });

  test("replace does not revive a job that failed for good: it loses its key and a new one is made", async () => {
    const database = await fresh();
    const dead = await addJob(database, "greet", { job_key: "k", max_attempts: 2 });
    await failForGood(database, dead.id);
    const added = await addJob(database, "greet", { job_key: "k" });
    expect(added.id).not.toBe(dead.id);
    expect(await database.job(dead.id)).toMatchObject({ key: null, attempts: 2, last_error: "no" });
  });

  test.each(["waiting", "running", "dead"])("unsafe_dedupe only counts up the revision of a %s job", async (state) => {
    const database = await fresh();
    const first = await addJob(database, "greet", { job_key: "k", payload: { n: 1 }, run_at: later });
    if (state === "running") await claim(database, first.id);
    if (state === "dead") await failForGood(database, first.id);
    const before = await database.job(first.id);
    const second = await addJob(database, "wave", {
      job_key: "k",
      payload: { n: 2 },
      queue_name: "q",
      priority: 9,
      job_key_mode: "unsafe_dedupe",
    });
    expect(second.id).toBe(first.id);
    const after = await database.job(first.id);
    expect(after).toEqual({ ...before, revision: 1, updated_at: after?.updated_at });
    expect(await database.jobs()).toHaveLength(1);
  });

  test("unsafe_dedupe adds a job with every argument when the key is free", async () => {
    const database = await fresh();
    const args = { payload: [1], queue_name: "q", run_at: later, max_attempts: 2, priority: 3, flags: ["f"] };
    const job = await addJob(database, "greet", { ...args, job_key: "k", job_key_mode: "unsafe_dedupe" });
    expect(await database.job(job.id)).toMatchObject({ ...args, flags: { f: true }, key: "k", revision: 0 });
  });

  test("a key is one key for all tasks", async () => {
    const database = await fresh();
    const first = await addJob(database, "greet", { job_key: "k" });
    const second = await addJob(database, "wave", { job_key: "k" });
    expect(second.id).toBe(first.id);
  });

  test("add_jobs gives a row for every spec, and nothing for none", async () => {
    const database = await fresh();
    const specs = Array.from({ length: 12 }, (_, n) => ({
      identifier: `task-${n % 4}`,
      payload: { n },
      job_key: n % 3 === 0 ? `key-${n}` : null,
      queue_name: n % 5 === 0 ? "q" : null,
    }));
    const rows = await addJobs(database, specs);
    const ns = rows.map(({ payload }) => (payload as { n: number }).n);
    // The original gives them in the order of its joins; ours in the order of the specs.
    expect(isOurs ? ns : ns.sort((a, b) => a - b)).toEqual(specs.map((_, n) => n));
    expect(await addJobs(database, [])).toEqual([]);
  });

  test("a key twice in one call is refused as a whole", async () => {
    const database = await fresh();
    const specs = [
      { identifier: "greet" },
      { identifier: "greet", job_key: "twin" },
      { identifier: "wave", job_key: "twin" },
    ];
    const failure = await addJobs(database, specs).catch((error: Error & { code: string }) => error);
    expect(failure).toMatchObject({ code: "21000" });
    if (isOurs) expect(failure).toMatchObject({ message: expect.stringContaining("'twin'") });
    expect(await database.jobs()).toEqual([]);
  });

  // SQLSTATE of ours, and of the original, whose own codes went missing in its 0.14.
  test.each([
    ["an identifier of 129 characters", { identifier: "x".repeat(129) }, "GWBID", "23514"],
    ["a queue name of 129 characters", { queue_name: "x".repeat(129) }, "GWBQN", "23514"],
    ["a key of 513 characters", { job_key: "x".repeat(513) }, "GWBJK", "23514"],
    ["an empty key", { job_key: "" }, "GWBJK", "23514"],
    ["max attempts of 0", { max_attempts: 0 }, "GWBMA", "23514"],
    ["negative max attempts", { max_attempts: -1 }, "GWBMA", "23514"],
    ["max attempts over smallint", { max_attempts: 40_000 }, "22003", "22003"],
    ["a priority over smallint", { priority: 40_000 }, "22003", "22003"],
    ["no identifier", { identifier: null }, "23502", "23502"],
    ["NULL among the flags", { flags: ["a", null] }, "22023", "22023"],
  ])("%s is refused by add_job and add_jobs alike", async (_what, bad, ours, theirs) => {
    const database = await fresh();
    const code = isOurs ? ours : theirs;
    const spec = { identifier: "greet", ...bad };
    expect(await codeOf(call(database, "add_job", spec))).toBe(code);
    expect(await codeOf(call(database, "add_job", { job_key: "k", ...spec }))).toBe(code);
    expect(await codeOf(call(database, "add_job", { job_key: "k", job_key_mode: "unsafe_dedupe", ...spec }))).toBe(
      code,
    );
    expect(await codeOf(addJobs(database, [{ identifier: "fine" }, spec]))).toBe(code);
    expect(await database.jobs()).toEqual([]);
  });

  test("values at the limit are accepted", async () => {
    const database = await fresh();
    const job = await addJob(database, "t".repeat(128), {
      queue_name: "q".repeat(128),
      job_key: "k".repeat(512),
      max_attempts: 32_767,
      priority: -32_768,
    });
    expect(job).toMatchObject({ max_attempts: 32_767, priority: -32_768 });
  });

  test("adding again does not use up ids of tasks and queues", async () => {
    const database = await fresh();
    for (const mode of ["replace", "preserve_run_at", "unsafe_dedupe"]) {
      await addJob(database, "greet", { queue_name: "q" });
      await addJob(database, "greet", { queue_name: "q", job_key: "k", job_key_mode: mode });
      await addJobs(database, [
        { identifier: "greet", queue_name: "q" },
        { identifier: "greet", queue_name: "q" },
      ]);
    }
    await addJob(database, "wave", { queue_name: "r" });
    expect(await database.query("select id, identifier from graphile_worker._private_tasks order by id")).toEqual([
      { id: 1, identifier: "greet" },
      { id: 2, identifier: "wave" },
    ]);
    expect(await database.query("select id from graphile_worker._private_job_queues order by id")).toEqual([
      { id: 1 },
      { id: 2 },
    ]);
  });

  test("remove_job deletes a waiting job, and a dead one, and gives it back", async () => {
    const database = await fresh();
    for (const state of ["waiting", "dead"]) {
      const job = await addJob(database, "greet", { job_key: "k" });
      if (state === "dead") await failForGood(database, job.id);
      const [removed] = await call(database, "remove_job", { job_key: "k" });
      expect(removed).toMatchObject({ id: job.id, key: "k" });
      expect(await database.job(job.id)).toBeUndefined();
    }
  });

  test("remove_job lets a running job finish, but never again", async () => {
    const database = await fresh();
    const job = await addJob(database, "greet", { job_key: "k" });
    await claim(database, job.id);
    const [removed] = await call(database, "remove_job", { job_key: "k" });
    expect(removed).toMatchObject({ id: job.id, key: null, attempts: 25, locked_by: "pool-1" });
    expect(await database.job(job.id)).toMatchObject({ key: null, attempts: 25, locked_by: "pool-1" });
  });

  test("remove_job deletes a job that has been locked for more than four hours", async () => {
    const database = await fresh();
    const job = await addJob(database, "greet", { job_key: "k" });
    await claim(database, job.id, "4 hours 1 minute");
    expect(await call(database, "remove_job", { job_key: "k" })).toMatchObject([{ id: job.id }]);
    expect(await database.job(job.id)).toBeUndefined();
  });

  test("remove_job gives NULL for an unknown key and for NULL", async () => {
    const database = await fresh();
    for (const key of ["unknown", null]) {
      expect(await call(database, "remove_job", { job_key: key })).toMatchObject([{ id: null }]);
    }
  });

  test("complete_jobs, permanently_fail_jobs and reschedule_jobs leave jobs alone that were locked within four hours", async () => {
    const database = await fresh();
    const calls: Array<[string, Record<string, unknown>]> = [
      ["reschedule_jobs", { run_at: later }],
      ["permanently_fail_jobs", {}],
      ["complete_jobs", {}],
    ];
    for (const [name, args] of calls) {
      const [waiting, running, stuck] = await addJobs(database, [
        { identifier: "greet" },
        { identifier: "greet" },
        { identifier: "greet" },
      ]);
      await claim(database, running!.id, "3 hours 59 minutes");
      await claim(database, stuck!.id, "4 hours 1 minute");
      const before = await database.job(running!.id);
      const ids = [waiting!.id, running!.id, stuck!.id, "999999"];
      const rows = await call(database, name, { job_ids: ids, ...args });
      expect(rows.map(({ id }) => id).sort()).toEqual([waiting!.id, stuck!.id].sort());
      expect(await database.job(running!.id)).toEqual(before);
    }
  });

  test("complete_jobs deletes", async () => {
    const database = await fresh();
    const [one, two] = await addJobs(database, [{ identifier: "greet" }, { identifier: "greet" }]);
    expect(await call(database, "complete_jobs", { job_ids: [one!.id] })).toMatchObject([{ id: one!.id }]);
    expect((await database.jobs()).map(({ id }) => id)).toEqual([two!.id]);
  });

  test("permanently_fail_jobs uses up the attempts and notes why", async () => {
    const database = await fresh();
    const [one, two] = await addJobs(database, [{ identifier: "greet", max_attempts: 3 }, { identifier: "greet" }]);
    await call(database, "permanently_fail_jobs", { job_ids: [one!.id] });
    await call(database, "permanently_fail_jobs", { job_ids: [two!.id], error_message: "because" });
    expect(await database.job(one!.id)).toMatchObject({
      attempts: 3,
      last_error: "Manually marked as failed",
      is_available: false,
    });
    expect(await database.job(two!.id)).toMatchObject({ attempts: 25, last_error: "because" });
  });

  test("reschedule_jobs changes what is given, zero included, and keeps the rest", async () => {
    const database = await fresh();
    const job = await addJob(database, "greet", { priority: 5, max_attempts: 4, run_at: evenLater });
    await database.query("update graphile_worker._private_jobs set attempts = 4, last_error = 'oops'");
    await call(database, "reschedule_jobs", { job_ids: [job.id], priority: 0, attempts: 0 });
    expect(await database.job(job.id)).toMatchObject({
      priority: 0,
      attempts: 0,
      max_attempts: 4,
      run_at: evenLater,
      last_error: "oops",
    });
    await call(database, "reschedule_jobs", { job_ids: [job.id], run_at: later, max_attempts: 9 });
    expect(await database.job(job.id)).toMatchObject({ priority: 0, run_at: later, max_attempts: 9 });
  });

  test("reschedule_jobs does not clear an old lock", async () => {
    const database = await fresh();
    const job = await addJob(database, "greet");
    await claim(database, job.id, "5 hours");
    await call(database, "reschedule_jobs", { job_ids: [job.id], run_at: later });
    expect(await database.job(job.id)).toMatchObject({ locked_by: "pool-1", run_at: later });
  });

  test("force_unlock_workers frees jobs and queues of the given pools only", async () => {
    const database = await fresh();
    const one = await addJob(database, "greet", { queue_name: "q" });
    const two = await addJob(database, "greet", { queue_name: "r" });
    await claim(database, one.id, "1 minute", "pool-1");
    await claim(database, two.id, "1 minute", "pool-2");
    await database.query(
      "update graphile_worker._private_job_queues set locked_at = now(), locked_by = case queue_name when 'q' then 'pool-1' else 'pool-2' end",
    );
    await call(database, "force_unlock_workers", { worker_ids: ["pool-1"] });
    expect(await database.job(one.id)).toMatchObject({ locked_at: null, locked_by: null, attempts: 1 });
    expect(await database.job(two.id)).toMatchObject({ locked_by: "pool-2" });
    expect(
      await database.query("select queue_name, locked_by from graphile_worker._private_job_queues order by 1"),
    ).toEqual([
      { queue_name: "q", locked_by: null },
      { queue_name: "r", locked_by: "pool-2" },
    ]);
  });

  test("the view shows jobs with their names and without their payload", async () => {
    const database = await fresh();
    const job = await addJob(database, "greet", { queue_name: "q", job_key: "k" });
    const [row] = await database.query("select * from graphile_worker.jobs");
    expect(row).toMatchObject({ id: job.id, queue_name: "q", task_identifier: "greet", key: "k" });
    expect(row).not.toHaveProperty("payload");
  });

  test("a trigger can add jobs", async () => {
    const database = await fresh();
    await database.pool.query(`
      create table public.account (id int primary key);
      create function public.welcome() returns trigger language plpgsql as $$
      begin
        perform graphile_worker.add_job('welcome', json_build_object('id', new.id), job_key := 'welcome-' || new.id);
        return new;
      end $$;
      create trigger welcome after insert on public.account for each row execute function public.welcome();
      insert into public.account select generate_series(1, 3);`);
    expect((await database.jobs()).map(({ payload, key }) => [payload, key])).toEqual([
      [{ id: 1 }, "welcome-1"],
      [{ id: 2 }, "welcome-2"],
      [{ id: 3 }, "welcome-3"],
    ]);
  });

  test("jobs is a view that cannot be written; reschedule_jobs changes what it shows", async () => {
    const database = await fresh();
    await addJob(database, "greet");
    expect(await codeOf(database.query("update graphile_worker.jobs set priority = 1"))).toBe("55000");
    expect(await codeOf(database.query("delete from graphile_worker.jobs"))).toBe("55000");
    await database.query(`select graphile_worker.reschedule_jobs(
      array(select id from graphile_worker.jobs where task_identifier = 'greet'), priority => -5)`);
    expect(await database.query("select priority from graphile_worker.jobs")).toEqual([{ priority: -5 }]);
  });

  test("somebody who does not own the tables sees no jobs and adds none", async () => {
    const database = await fresh();
    await addJob(database, "greet");
    const client = await database.pool.connect();
    try {
      await client.query("begin");
      await client.query(`
        create role hathi_stranger;
        grant usage on schema graphile_worker to hathi_stranger;
        grant all on all tables in schema graphile_worker to hathi_stranger;
        grant all on all sequences in schema graphile_worker to hathi_stranger;
        set local role hathi_stranger`);
      expect((await client.query("select id from graphile_worker._private_jobs")).rows).toEqual([]);
      expect(await codeOf(client.query("select graphile_worker.add_job('greet')"))).toBe("42501");
    } finally {
      await client.query("rollback");
      client.release();
    }
  });
});
