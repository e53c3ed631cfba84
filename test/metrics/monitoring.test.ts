import { spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { parse as parseYaml } from "yaml";
import { makeMetrics, serveMetrics } from "../../src/metrics/index.ts";
import { freshDatabase } from "../support/database.ts";
import { hasProgram } from "../support/has-program.ts";
import { makeProject } from "../support/project.ts";
import { until } from "../support/wait.ts";
import { startWorker } from "../worker/kit.ts";

/* The files in monitoring/, read by the programs that they are for. */

vi.setConfig({ testTimeout: 120_000 });

const pathOf = (name: string): string => fileURLToPath(new URL(`../../monitoring/${name}`, import.meta.url));
const read = (name: string): string => readFileSync(pathOf(name), "utf8");
const alerts = (parseYaml(read("alerts.yml")) as { groups: [{ rules: { alert: string; expr: string }[] }] }).groups[0]
  .rules;
const board = JSON.parse(read("grafana.json")) as { panels: { title: string; targets: { expr: string }[] }[] };
const expressions = board.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));

async function metricsOfWork(): Promise<ReturnType<typeof makeMetrics>> {
  const db = await freshDatabase();
  await db.query(`select graphile_worker.add_job(task, max_attempts => 1) from unnest(array['work', 'fail']) as task`);
  const metrics = makeMetrics();
  const tasks = {
    work: () => undefined,
    fail: () => {
      throw new Error("boom");
    },
  };
  const worker = await startWorker(db, tasks, { metrics });
  await worker.runner.addJob("elsewhere", {});
  await worker.completed(2);
  await until(async () => (await metrics.prometheus()).includes("hathi_oldest_runnable_seconds"));
  return metrics;
}

test("the board and the alerts ask only for metrics that there are", async () => {
  const text = await (await metricsOfWork()).prometheus();
  const exported = new Set([...text.matchAll(/^([a-z_]+)[{ ]/gm)].map(([, name]) => name));
  // Nothing holds back vacuum here.
  for (const name of ["hathi_xmin_age_seconds", "hathi_xmin_age_transactions"]) exported.add(name);
  const asked = [...expressions, ...alerts.map(({ expr }) => expr)].flatMap(
    (expr) => expr.match(/hathi_[a-z_]+/g) ?? [],
  );
  expect(asked.length).toBeGreaterThan(20);
  expect(asked.filter((name) => !exported.has(name))).toEqual([]);
});

test("the alerts in SQL fire for what they are about, and for nothing else", async () => {
  const db = await freshDatabase();
  const firing = async (): Promise<unknown[]> =>
    (await db.query<{ alert: string; subject: string }>(read("alerts.sql"))).map(({ alert, subject }) => [
      alert,
      subject,
    ]);
  expect(await firing()).toEqual([["HathiNoFigures", "graphile_worker"]]);
  await db.query("update graphile_worker._hathi_rollup set refreshed_at = now()");
  expect(await firing()).toEqual([]);

  await db.query(`
    select graphile_worker.add_job('late', run_at => now() - interval '6 minutes');
    select graphile_worker.add_job('queued', queue_name => 'q', run_at => now() - interval '6 minutes');
    select graphile_worker.add_job('fresh'), graphile_worker.add_job('later', run_at => now() + interval '1 day');
    select graphile_worker._hathi_record_times('[
      {"task": "flaky", "waits": [1], "runs": [1], "succeeded": 1, "failed": 1, "permanently_failed": 0},
      {"task": "fine", "waits": [1], "runs": [1], "succeeded": 9, "failed": 1, "permanently_failed": 0},
      {"task": "lost", "waits": [1], "runs": [1], "succeeded": 9, "failed": 1, "permanently_failed": 1}
    ]')`);
  expect(await firing()).toEqual([
    ["HathiFailureRateHigh", "flaky"],
    ["HathiJobsPermanentlyFailed", "lost"],
    ["HathiJobsWaitTooLong", "late"],
    ["HathiJobsWaitTooLong", "queued"],
  ]);
});

test("every alert is there in SQL, too, except those about a process that the database does not know", async () => {
  const db = await freshDatabase();
  const blocker = await db.pool.connect();
  try {
    await blocker.query("begin isolation level repeatable read; select txid_current()");
    // With limits that anything is above.
    const eager = read("alerts.sql").replaceAll(/> (?:900|500000)/g, "> -1");
    const fired = (await db.query<{ alert: string }>(eager)).map(({ alert }) => alert);
    expect(fired).toEqual(expect.arrayContaining(["HathiVacuumHeldBack", "HathiDeadRows"]));
    const written = [...read("alerts.sql").matchAll(/'(Hathi\w+)'/g)].map(([, name]) => name!);
    const known = [...written, "HathiClaimsFail", "HathiEventLoopBlocked"];
    expect(known.sort()).toEqual(alerts.map(({ alert }) => alert).sort());
  } finally {
    await blocker.query("rollback");
    blocker.release();
  }
});

describe.skipIf(!hasProgram("prometheus"))("with Prometheus", () => {
  const promtool = (args: readonly string[], input = ""): string => {
    const { status, stdout, stderr } = spawnSync("promtool", args, { input, encoding: "utf8" });
    expect(status, stdout + stderr).toBe(0);
    return stdout;
  };

  test("promtool accepts the metrics, the alerts, and what the board asks", async () => {
    promtool(["check", "metrics"], await (await metricsOfWork()).prometheus());
    promtool(["check", "rules", pathOf("alerts.yml")]);
    const rules = expressions.map((expr, index) => ({
      record: `board_${index}`,
      expr: expr.replaceAll("$__rate_interval", "5m"),
    }));
    const project = await makeProject({ "board.json": JSON.stringify({ groups: [{ name: "board", rules }] }) });
    promtool(["check", "rules", project.path("board.json")]);
  });

  test("the alerts fire after their time, as promtool works them out", async () => {
    const series = [
      ['hathi_oldest_runnable_seconds{schema="s",task="slow",instance="a"}', "400x20"],
      ['hathi_oldest_runnable_seconds{schema="s",task="fine",instance="a"}', "10x20"],
      ['hathi_xmin_age_transactions{schema="s",kind="slot",holder="gone"}', "100000x20"],
      ['hathi_rollup_age_seconds{schema="s"}', "3x20"],
    ].map(([name, values]) => ({ series: name, values: values!.replace("x", "+0x") }));
    const fires = (alertname: string, labels: object, annotations: object): object => ({
      eval_time: "10m",
      alertname,
      exp_alerts: [{ exp_labels: { severity: "warning", ...labels }, exp_annotations: annotations }],
    });
    const alert_rule_test = [
      fires(
        "HathiJobsWaitTooLong",
        { schema: "s", task: "slow" },
        {
          summary: "Jobs of slow are not started",
          description: "The oldest has been due for 6m 40s. 'hathi why <id>' explains why a job is not running.",
        },
      ),
      fires(
        "HathiVacuumHeldBack",
        { schema: "s", kind: "slot", holder: "gone" },
        {
          summary: "slot gone holds back vacuum on the table of jobs",
          description: "Workers become slower until it ends. 'hathi doctor' says how to end it.",
        },
      ),
      { eval_time: "10m", alertname: "HathiNoFigures", exp_alerts: [] },
      { eval_time: "1m", alertname: "HathiJobsWaitTooLong", exp_alerts: [] },
    ];
    const tests = [{ interval: "1m", input_series: series, alert_rule_test }];
    const project = await makeProject({ "test.json": JSON.stringify({ rule_files: [pathOf("alerts.yml")], tests }) });
    promtool(["test", "rules", project.path("test.json")]);
  });

  test("a real Prometheus scrapes a worker and loads the alerts", async () => {
    const server = await serveMetrics(await metricsOfWork(), { port: 0 });
    onTestFinished(() => server.close());
    const target = new URL(server.url).host;
    const project = await makeProject({
      "prometheus.json": JSON.stringify({
        global: { scrape_interval: "1s", evaluation_interval: "1s" },
        rule_files: [pathOf("alerts.yml")],
        scrape_configs: [{ job_name: "hathi", static_configs: [{ targets: [target] }] }],
      }),
    });
    const address = `127.0.0.1:${await freePort()}`;
    const child = spawn(
      "prometheus",
      [
        `--config.file=${project.path("prometheus.json")}`,
        `--storage.tsdb.path=${project.path("data")}`,
        `--web.listen-address=${address}`,
      ],
      { stdio: "ignore" },
    );
    const ended = new Promise((resolve) => child.once("exit", resolve));
    onTestFinished(async () => {
      child.kill("SIGKILL");
      await ended;
    });
    const ask = async (path: string): Promise<string> =>
      fetch(`http://${address}/api/v1/${path}`).then(
        (response) => response.text(),
        () => "",
      );
    const query = encodeURIComponent('hathi_jobs_finished_total{task="work",outcome="succeeded"}');
    await until(async () => /"value":\[[\d.]+,"1"\]/.test(await ask(`query?query=${query}`)), { withinMs: 60_000 });
    expect(await ask("targets")).toContain('"health":"up"');
    const rules = await ask("rules");
    for (const { alert } of alerts) expect(rules).toContain(`"name":"${alert}"`);
  });
});

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}
