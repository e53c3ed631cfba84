// A small shop that sends mail, makes invoices and delivers webhooks; some fail. It is there to be shown.

import { setTimeout as sleep } from "node:timers/promises";
import { createDashboard } from "../../dist/dashboard/server/index.js";
import { Logger, makeWorkerUtils, parseCrontab, run } from "../../dist/index.js";
import { makeMetrics } from "../../dist/metrics/index.js";

const logger = new Logger(() => () => undefined);
const between = (least, most) => least + Math.random() * (most - least);
const pick = (values) => values[Math.floor(Math.random() * values.length)];

class PaymentError extends Error {
  name = "PaymentError";
}

const work = {
  "mail/send": () => sleep(between(20, 90)),
  "thumbnail/create": () => sleep(between(120, 600)),
  "invoice/pdf": async ({ lines, total }) => {
    await sleep(between(200, 900));
    if (total === 0 || Math.random() < 0.04) lines.total.toFixed(2);
  },
  "webhook/deliver": async ({ tenant, isLast }) => {
    await sleep(between(40, 250));
    if (isLast || Math.random() < 0.12)
      throw new PaymentError(`The payment provider answered 503 for tenant ${tenant}`);
  },
  "sync/tenant": () => sleep(between(800, 2_500)),
  "report/weekly": () => sleep(between(3_000, 9_000)),
};

/** Per minute and typical times, for the hour before. */
const past = {
  "mail/send": { rate: 420, wait: 9, run: 60, failed: 0.001 },
  "thumbnail/create": { rate: 110, wait: 11, run: 330, failed: 0.0005 },
  "invoice/pdf": { rate: 60, wait: 14, run: 520, failed: 0.03 },
  "webhook/deliver": { rate: 90, wait: 10, run: 140, failed: 0.08 },
  "sync/tenant": { rate: 20, wait: 160, run: 1_500, failed: 0 },
};

const bins = 49;
const binOf = (ms) => Math.max(0, Math.min(bins - 1, Math.ceil(2 * Math.log2(ms))));

/** A count per bin, spread around the typical time as real times are. */
function spread(count, typical) {
  const counts = Array.from({ length: bins }, () => 0);
  for (let n = 0; n < count; n += 1) {
    const wide = Math.random() + Math.random() + Math.random() - 1.5;
    counts[binOf(typical * Math.exp(1.3 * wide))] += 1;
  }
  return counts;
}

export async function openShop(serverAddress, setHostname) {
  const connectionString = await createDatabase(serverAddress, "shop");
  const utils = await makeWorkerUtils({ connectionString, logger });
  await writePast(utils, 60);
  const cronItems = parseCrontab(
    "0 4 * * * report/weekly ?id=nightly-report\n*/15 * * * * sync/tenant ?id=sync-all\n30 8 * * 1 report/weekly ?id=weekly-report",
  );
  const runners = [];
  for (const name of ["web-1", "web-2", "web-3"]) {
    setHostname(name);
    runners.push(
      await run({
        connectionString,
        logger,
        noHandleSignals: true,
        taskList: work,
        parsedCronItems: cronItems,
        concurrency: 12,
        history: "full",
        recovery: true,
        appVersion: "4.2.0",
        metrics: makeMetrics(),
        taskOptions: { "webhook/deliver": { concurrency: { limit: 4, key: "tenant" } } },
      }),
    );
  }
  const producer = produce(utils);
  const dashboard = createDashboard({
    connectionString,
    logger,
    auth: () => ({ name: "ann", can: "everything" }),
    title: "production",
    tasks: work,
    cronItems,
    timeZone: "Europe/Berlin",
  });
  return {
    dashboard,
    /** Waits until there is something on every page, and gives the id of a job that has failed. */
    async settle() {
      await utils.addJobs(
        Array.from({ length: 4 }, (_, n) => ({
          identifier: "invoice/pdf",
          payload: invoice(n, 0),
          maxAttempts: 2,
          jobKey: `invoice:${9_917 + n}`,
        })),
      );
      await utils.addJobs(
        Array.from({ length: 9 }, (_, n) => ({
          identifier: "webhook/deliver",
          payload: { tenant: n + 3, isLast: true },
          maxAttempts: 1,
          jobKey: `hook:${400 + n}`,
        })),
      );
      await sleep(15_000);
      // As if the version had been there for a while.
      await utils.withPgClient((client) =>
        client.query("update graphile_worker._private_workers set started_at = started_at - interval '34 minutes'"),
      );
      await utils.pause({ task: "sync/tenant" }, { reason: "the tenants' API is being moved", by: "joe" });
      await sleep(5_000);
      await writePast(utils, 2);
      await copyFailures(utils);
      const { jobs } = await utils.listJobs({ state: "dead", task: "invoice/pdf" });
      return jobs[0].id;
    },
    async close() {
      producer.stop();
      await Promise.all(runners.map((runner) => runner.stop()));
      await dashboard.close();
      await utils.release();
    },
  };
}

function invoice(n, total) {
  return {
    tenant: 17,
    invoice: 9_917 + n,
    customer: { name: "Håkon & Søn", email: "office@example.com", city: "Oslo" },
    lines: [
      { sku: "A-1", count: 2, price: 19.5 },
      { sku: "B-7", count: 1, price: 249 },
    ],
    apiKey: "not shown",
    total,
  };
}

/** A steady stream of jobs, with the odd one for later. */
function produce(utils) {
  const timer = setInterval(() => {
    const tenant = Math.floor(between(1, 30));
    const jobs = [
      ...Array.from({ length: 2 }, () => ({
        identifier: "mail/send",
        payload: { to: `user${tenant}@example.com`, template: pick(["welcome", "receipt", "reset"]) },
      })),
      ...(Math.random() < 0.7
        ? [{ identifier: "thumbnail/create", payload: { image: `img/${tenant}.jpg`, width: 320 } }]
        : []),
      ...(Math.random() < 0.3
        ? [{ identifier: "invoice/pdf", payload: invoice(tenant, 1), jobKey: `invoice:${Date.now()}` }]
        : []),
      ...(Math.random() < 0.45 ? [{ identifier: "webhook/deliver", payload: { tenant } }] : []),
      ...(Math.random() < 0.1
        ? [{ identifier: "sync/tenant", payload: { tenant }, queueName: `tenant-${tenant}` }]
        : []),
      ...(Math.random() < 0.05
        ? [{ identifier: "mail/send", payload: { to: "later@example.com" }, runAt: new Date(Date.now() + 3_600_000) }]
        : []),
    ];
    utils.addJobs(jobs).catch(() => undefined);
  }, 300);
  return { stop: () => clearInterval(timer) };
}

async function createDatabase(serverAddress, name) {
  const utils = await makeWorkerUtils({ connectionString: serverAddress, logger }, { migrate: false });
  await utils.withPgClient((client) => client.query(`create database ${name}`));
  await utils.release();
  return Object.assign(new URL(serverAddress), { pathname: `/${name}` }).href;
}

/** The figures of so many minutes, as workers would have recorded them. */
async function writePast(utils, minutes) {
  const thisMinute = Math.floor(Date.now() / 60_000) * 60_000;
  for (let minute = minutes; minute >= 1; minute -= 1) {
    for (const [task, { rate, wait, run: ran, failed: share }] of Object.entries(past)) {
      const trouble = minute > 22 && minute < 30 && task === "webhook/deliver";
      const count = Math.round(rate * (1 + 0.25 * Math.sin(minute / 7) + between(-0.08, 0.08)));
      const failed = Math.round(count * (trouble ? 0.6 : share * between(0.5, 1.5)));
      const values = [
        new Date(thisMinute - minute * 60_000),
        task,
        spread(count, wait * (trouble ? 3 : 1)),
        spread(count, ran),
        count - failed,
        failed,
      ];
      await utils.withPgClient((client) =>
        client.query(
          `insert into graphile_worker._hathi_job_times (period, starts_at, task, waits, runs, succeeded, failed, permanently_failed)
           values ('minute', $1, $2, $3, $4, $5, $6, 0)
           on conflict (period, starts_at, task) do update
           set waits = excluded.waits, runs = excluded.runs, succeeded = excluded.succeeded, failed = excluded.failed`,
          values,
        ),
      );
    }
  }
}

/** The failures of the day before, after the example of those that there are. */
async function copyFailures(utils) {
  await utils.withPgClient((client) =>
    client.query(`
      insert into graphile_worker._hathi_history_attempts
      select (jsonb_populate_record(known, jsonb_build_object('settled_at', settled_at - n * interval '37 minutes', 'entry', entry + 100000000 * n::bigint, 'job_id', job_id + 100000 * n))).*
      from graphile_worker._hathi_history_attempts as known
      cross join generate_series(1, 36) as n
      where fingerprint is not null and random() < 0.5 + 0.4 * sin(n / 4.0)`),
  );
  await utils.withPgClient((client) =>
    client.query(`
      insert into graphile_worker._hathi_error_groups as known
      select expires_on, fingerprint, 0, min(task_identifier), min(error_class), count(*), min(settled_at), max(settled_at)
      from graphile_worker._hathi_history_attempts where fingerprint is not null group by expires_on, fingerprint
      on conflict (expires_on, fingerprint, slot) do update set failures = excluded.failures, first_at = excluded.first_at`),
  );
}
