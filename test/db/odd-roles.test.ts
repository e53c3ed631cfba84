import { expect, onTestFinished, test, vi } from "vitest";
import { type JobHelpers, makeWorkerUtils, runOnce } from "../../src/index.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { oddRole } from "../support/odd-role.ts";
import { until } from "../support/wait.ts";

vi.setConfig({ testTimeout: 120_000 });

interface Day {
  readonly ran: string[];
  readonly warnings: string[];
}

/** What happens in a worker's day: an install, adds of every kind, jobs that succeed, fail and come in order. */
async function liveThrough(database: TestDatabase, connectionString: string): Promise<Day> {
  const { logger, lines } = rememberingLogger();
  const utils = await makeWorkerUtils({ connectionString, logger });
  onTestFinished(async () => await utils.release());
  const runAt = new Date("2020-01-01T12:00:00Z");
  const added = await utils.addJob(
    "note",
    { text: "ü\\n'\\x41" },
    { runAt, jobKey: "k", queueName: "q", flags: ["a", "b"] },
  );
  expect(added.run_at).toEqual(runAt);
  await utils.addJob("note", [2], { jobKey: "k2", jobKeyMode: "preserve_run_at" });
  await utils.addJobs([
    { identifier: "note", payload: { n: 3 } },
    { identifier: "note", payload: { n: 4 }, queueName: "q", runAt, priority: -1 },
    { identifier: "note", payload: { n: 5 }, maxAttempts: 2, flags: ["c"] },
    { identifier: "fail", payload: {}, maxAttempts: 1 },
  ]);
  const ran: string[] = [];
  const taskList = {
    note: async (payload: unknown, { job }: JobHelpers) => {
      if (job.key === "k") expect(job.run_at).toEqual(runAt);
      ran.push(JSON.stringify(payload));
    },
    fail: () => {
      throw new Error("as \\ expected");
    },
  };
  await runOnce({ connectionString, logger, taskList, concurrency: 2, noHandleSignals: true });
  expect(await database.jobs()).toMatchObject([
    { task_identifier: "fail", last_error: expect.stringContaining("as \\ expected") },
  ]);
  const warnings = lines.filter(({ level }) => level === "error" || level === "warning").map(({ message }) => message);
  return { ran: ran.sort(), warnings: warnings.filter((message) => !/as \\ expected|Your pgPool/.test(message)) };
}

const everything = ["[2]", '{"n":3}', '{"n":4}', '{"n":5}', '{"text":"ü\\\\n\'\\\\x41"}'];

test.each([
  ["search_path = ''"],
  ["standard_conforming_strings = off"],
  ["TimeZone = 'Asia/Kolkata'"],
  ["IntervalStyle = 'sql_standard'"],
  ["bytea_output = 'escape'"],
  ["extra_float_digits = -15"],
  ["enable_indexscan = off"],
  ["enable_indexonlyscan = off"],
  ["enable_tidscan = off"],
  ["enable_nestloop = off"],
  ["transform_null_equals = on"],
  ["client_encoding = 'LATIN1'"],
  ["plpgsql.variable_conflict = 'use_variable'"],
  ["idle_in_transaction_session_timeout = '10s'"],
])("a role with %s works as any other", async (setting) => {
  const database = await freshDatabase({ migrated: false });
  expect(await liveThrough(database, await oddRole(database, [setting]))).toEqual({ ran: everything, warnings: [] });
});

test.each([
  [
    "default_transaction_isolation = 'serializable'",
    /^default_transaction_isolation is 'serializable' for the role 'odd_/,
  ],
  ["default_transaction_isolation = 'repeatable read'", /^default_transaction_isolation is 'repeatable read'/],
  ["statement_timeout = '4s'", /^statement_timeout is '4s'/],
  ["lock_timeout = '900ms'", /^lock_timeout is '900ms'/],
  ["idle_session_timeout = '30s'", /^idle_session_timeout is '30s'/],
])("a role with %s works, and is warned of at the start", async (setting, warning) => {
  const database = await freshDatabase();
  const { ran, warnings } = await liveThrough(database, await oddRole(database, [setting]));
  expect(ran).toEqual(everything);
  expect(warnings[0]).toMatch(warning);
});

test.each([
  ["array_nulls = off", /^array_nulls is 'off' for the role 'odd_\w+': arrays with nulls are misread/],
  ["DateStyle = 'SQL, DMY'", /^DateStyle is 'SQL, DMY'.*the driver 'pg' reads only ISO dates/],
  ["default_transaction_read_only = on", /^default_transaction_read_only is 'on'.*nothing can be written/],
])("a role with %s is named at the start and by the doctor", async (setting, message) => {
  const database = await freshDatabase();
  const connectionString = await oddRole(database, [setting]);
  const { logger, lines } = rememberingLogger();
  await runOnce({ connectionString, logger, taskList: { a: () => undefined }, noHandleSignals: true }).catch(
    () => undefined,
  );
  expect(lines.filter(({ level }) => level === "error")[0]?.message).toMatch(message);
  const utils = await makeWorkerUtils({ connectionString, logger });
  try {
    expect(await utils.examineHealth()).toContainEqual({
      name: "settings",
      status: "problem",
      message: expect.stringMatching(message),
    });
  } finally {
    await utils.release();
  }
});

test("the doctor finds nothing odd about a usual role", async () => {
  const database = await freshDatabase();
  const utils = await makeWorkerUtils({ pgPool: database.pool, logger: rememberingLogger().logger });
  expect(await utils.examineHealth()).toContainEqual({
    name: "settings",
    status: "ok",
    message: "No setting of the role stands in the way.",
  });
  await utils.release();
});

test("a role without TID scans does not read the table again for every claim", async () => {
  const database = await freshDatabase();
  const count = 2_000;
  await database.query(`select graphile_worker.add_job('note') from generate_series(1, ${count})`);
  await database.query("analyze graphile_worker._private_jobs");
  const read = async (): Promise<{ deleted: number; read: number }> => {
    const [row] = await database.query<{ deleted: number; read: number }>(
      `select n_tup_del::int as deleted, (seq_tup_read + coalesce(idx_tup_fetch, 0))::int as read
      from pg_stat_user_tables where schemaname = 'graphile_worker' and relname = '_private_jobs'`,
    );
    return row!;
  };
  const before = await read();
  const connectionString = await oddRole(database, ["enable_tidscan = off"]);
  const { logger } = rememberingLogger();
  await runOnce({
    connectionString,
    logger,
    taskList: { note: () => undefined },
    concurrency: 4,
    noHandleSignals: true,
  });
  // The server counts a connection's work at the latest when the connection ends.
  await until(async () => (await read()).deleted === count, { what: "the server counted every deleted job" });
  const perJob = ((await read()).read - before.read) / count;
  expect(perJob).toBeLessThan(8);
});

test("a function that rules sequential scans out makes sure that the other ways are open", async () => {
  const database = await freshDatabase();
  const functions = await database.query<{ name: string; settings: string[] }>(
    `select proname as name, proconfig as settings from pg_proc
    where pronamespace = 'graphile_worker'::regnamespace and 'enable_seqscan=off' = any (proconfig)`,
  );
  expect(functions.length).toBeGreaterThan(0);
  const needed = ["enable_indexscan=on", "enable_indexonlyscan=on", "enable_tidscan=on"];
  const joins = /^enable_(nestloop|hashjoin)=on$/;
  for (const { name, settings } of functions) {
    expect(settings, name).toEqual(expect.arrayContaining([...needed, expect.stringMatching(joins)]));
  }
});
