import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { cron } from "../../src/cron/cron.ts";
import { parseCrontab } from "../../src/cron/parse-crontab.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { until } from "../support/wait.ts";
import type { CronMark } from "./scheduler-kit.ts";

interface Simulation {
  readonly crontab: string;
  readonly from: string;
  readonly until: string;
}

/** A real process whose clock runs as fast as the database lets it. */
function simulate(db: TestDatabase, simulation: Simulation): ChildProcess {
  const script = fileURLToPath(new URL("scheduler-process.ts", import.meta.url));
  const child = spawn(process.execPath, ["--import", "jiti/register", script], {
    env: { ...process.env, DATABASE_URL: db.url, SIMULATION: JSON.stringify(simulation) },
    stdio: ["ignore", "ignore", "inherit"],
  });
  onTestFinished(() => {
    child.kill("SIGKILL");
  });
  return child;
}

async function marks(db: TestDatabase): Promise<(CronMark & { task: string })[]> {
  const jobs = await db.jobs();
  return jobs.map((job) => ({ task: job.task_identifier, ...(job.payload as { _cron: CronMark })._cron }));
}

const crontab = [
  "*/7 * * * * often",
  "30 2 * * * nightly ?tz=Europe/Berlin",
  "15 * * * * hourly ?tz=Europe/Berlin",
  "0 12 * * sun weekly",
].join("\n");

function expectedRuns(from: string, until: string): string[] {
  return parseCrontab(crontab)
    .flatMap((item) =>
      cron
        .next(item, new Date(Date.parse(from) - 1), 3_000)
        .filter(({ at }) => at < new Date(until))
        .map(({ at }) => `${item.task} ${at.toISOString()}`),
    )
    .sort();
}

test("three processes with the same crontab schedule each run of several days exactly once", async () => {
  const db = await freshDatabase();
  const days = { crontab, from: "2026-03-27T23:59:30Z", until: "2026-03-30T00:00:30Z" };
  const children = [simulate(db, days), simulate(db, days), simulate(db, days)];
  const codes = await Promise.all(children.map(async (child) => (await once(child, "exit"))[0]));
  expect(codes).toEqual([0, 0, 0]);
  const runs = (await marks(db)).map(({ task, ts }) => `${task} ${ts}`).sort();
  expect(runs).toEqual(expectedRuns(days.from, days.until));
}, 120_000);

test("a process killed in the middle of a back-fill leaves nothing out and nothing twice for the next", async () => {
  const db = await freshDatabase();
  const day = { crontab: "* * * * * task ?fill=1d", from: "2026-01-02T00:00:30Z", until: "2026-01-02T00:01:30Z" };
  await db.query(
    "insert into graphile_worker._private_known_crontabs (identifier, known_since) values ('task', '2025-01-01')",
  );

  const victim = simulate(db, day);
  await until(async () => (await db.jobs()).length > 20, { what: "the back-fill is under way" });
  victim.kill("SIGKILL");
  await once(victim, "exit");
  const before = (await db.jobs()).length;
  expect(before).toBeLessThan(1_400);

  const heir = simulate(db, day);
  expect((await once(heir, "exit"))[0]).toBe(0);
  const found = (await marks(db)).map(({ ts, backfilled }) => `${ts}${backfilled ? "*" : ""}`);
  const expected: string[] = [];
  for (let at = Date.parse("2026-01-01T00:01:00Z"); at <= Date.parse("2026-01-02T00:01:00Z"); at += 60_000) {
    expected.push(`${new Date(at).toISOString()}${at < Date.parse(day.from) ? "*" : ""}`);
  }
  expect(found).toEqual(expected);
}, 120_000);
