import { expect, onTestFinished, test, vi } from "vitest";
import { makeWorkerUtils, run } from "../../src/index.ts";
import { makeMetrics } from "../../src/metrics/index.ts";
import { deferred } from "../../src/util/deferred.ts";
import { freshDatabase } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { oddRole } from "../support/odd-role.ts";
import { until } from "../support/wait.ts";

vi.setConfig({ testTimeout: 120_000 });

const harmless = [
  ...[
    "search_path = ''",
    "standard_conforming_strings = off",
    "TimeZone = 'Asia/Kolkata'",
    "transform_null_equals = on",
  ],
  ...["IntervalStyle = 'sql_standard'", "bytea_output = 'escape'", "extra_float_digits = -15"],
  ...["enable_indexscan = off", "enable_indexonlyscan = off", "enable_tidscan = off", "enable_nestloop = off"],
  ...["plpgsql.variable_conflict = 'use_variable'", "client_encoding = 'LATIN1'"],
];

test.each([
  ["every harmless setting at once", harmless, []],
  [
    "serializable transactions",
    ["default_transaction_isolation = 'serializable'"],
    [/^default_transaction_isolation is 'serializable'/],
  ],
])(
  "recovery, history, limits, guards, pauses, cancels and completing work for a role with %s",
  async (_what, settings, warnings) => {
    const database = await freshDatabase({ migrated: false });
    const connectionString = await oddRole(database, settings);
    const { logger, lines } = rememberingLogger();
    const metrics = makeMetrics();
    const isHeld = deferred();
    const runner = await run({
      connectionString,
      noHandleSignals: true,
      logger,
      metrics,
      history: "full",
      recovery: true,
      concurrency: 3,
      limits: { service: { rateLimit: { limit: 100, period: "1s" } } },
      taskOptions: {
        report: { keepResult: true, limits: ["service"], concurrency: { limit: 1, key: "k" } },
        once: { transactional: true },
      },
      taskList: {
        report: (payload, { reportProgress }) => {
          reportProgress({ done: 1, total: 3, note: "ü" });
          return payload;
        },
        once: () => undefined,
        within: (_, { completeIn, withPgClient }) =>
          withPgClient(async (client) => {
            await client.query("begin");
            await completeIn!(client);
            await client.query("commit");
          }),
        hold: (_, { abortSignal }) =>
          new Promise((_resolve, reject) => {
            isHeld.resolve();
            abortSignal.addEventListener("abort", () => reject(abortSignal.reason));
          }),
      },
    });
    onTestFinished(() => runner.stop().catch(() => undefined));
    const utils = await makeWorkerUtils({ connectionString, logger });
    onTestFinished(async () => await utils.release());
    const timeout = "50s";
    const payload = { k: "ü", text: "\\x41'" };
    for (let n = 0; n < 3; n++) expect(await utils.addJobAndWait("report", payload, { timeout })).toEqual(payload);
    for (const task of ["once", "within"]) await utils.waitForJob((await utils.addJob(task, {})).id, { timeout });
    const later = new Date("2100-01-01Z");
    const debounced = await utils.addJob("report", payload, { debounce: { key: "d", delay: "90m" } });
    expect(debounced!.run_at.getTime() - debounced!.created_at.getTime()).toBeCloseTo(5_400_000, -3);
    await utils.addJob("report", payload, { throttle: { key: "t", period: "1h" }, runAt: later });
    await utils.addJob("report", payload, { singleton: { key: "s" }, runAt: later });
    await utils.pause({ task: "report" }, { reason: "a test", until: later });
    expect(await utils.listPauses()).toMatchObject([{ until: later }]);
    expect(await utils.resume({ task: "report" })).toBe(true);
    await utils.setLimit("service", { limit: 50, period: "90s" });
    expect((await utils.listLimits()).map(({ name }) => name)).toContain("service");
    await utils.clearLimit("service");
    const held = await utils.addJob("hold", {});
    await isHeld.promise;
    await utils.cancelJobs([held.id], { reason: "a test" });
    await expect(utils.waitForJob(held.id, { timeout })).rejects.toThrow(/cancel/);
    // A worker that died lately: its job runs again here.
    await database.query(
      `insert into graphile_worker._private_workers (id, last_heartbeat_at, metadata) values ('dead', now() - interval '1 day', '{"concurrency":1}')`,
    );
    const { id } = await utils.addJob("once", {}, { runAt: later, queueName: "q" });
    await database.query(
      "update graphile_worker._private_jobs set locked_by = 'dead', locked_at = now() - interval '1 day', attempts = 1 where id = $1",
      [id],
    );
    await database.query(
      "update graphile_worker._private_job_queues set locked_by = 'dead', locked_at = now() - interval '1 day'",
    );
    expect((await utils.sweepStaleWorkers({ recoveryDelay: 0 })).workerIds).toEqual(["dead"]);
    await until(async () => (await database.job(id)) === undefined, { what: "the recovered job is done" });
    expect((await utils.listHistory()).entries.length).toBeGreaterThan(3);
    expect(await metrics.prometheus()).toContain('hathi_jobs_finished_total{task="report"');
    await utils.cleanup({ tasks: ["GC_JOB_QUEUES", "DROP_EXPIRED_HISTORY"] });
    await runner.stop();
    const complaints = lines
      .filter(({ level }) => level === "error" || level === "warning")
      .map(({ message }) => message);
    expect([...new Set(complaints)].filter((message) => !/'dead'|Worker dead/.test(message))).toEqual(
      warnings.map((pattern) => expect.stringMatching(pattern)),
    );
  },
);
