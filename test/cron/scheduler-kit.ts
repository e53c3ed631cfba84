import { EventEmitter } from "node:events";
import type { Pool } from "pg";
import { onTestFinished } from "vitest";
import { type CronInput, parseCron } from "../../src/cron/parse-cron.ts";
import type { CronTrouble } from "../../src/cron/schedule-runs.ts";
import { type CronOptions, type RunningCron, startCron } from "../../src/cron/scheduler.ts";
import { poolDatabase } from "../../src/db/database.ts";
import { makeEmit } from "../../src/emit.ts";
import type { Emit, HathiEventMap } from "../../src/events.ts";
import { freshDatabase, type JobRow, type TestDatabase, testPool } from "../support/database.ts";
import { TestClock } from "./test-clock.ts";

export interface CronMark {
  ts: string;
  backfilled: boolean;
  timeZone?: string;
  localTime?: string;
}

type Heard = { [Name in keyof HathiEventMap]: [Name, HathiEventMap[Name]] }[keyof HathiEventMap];

/** One scheduler of a test: what it emitted and what went wrong. */
export interface TestScheduler {
  readonly cron: RunningCron;
  readonly heard: Heard[];
  readonly troubles: CronTrouble[];
}

/** A database, a clock that stands still, and any number of schedulers that share both. */
export class CronBench {
  readonly db: TestDatabase;
  readonly clock: TestClock;

  constructor(db: TestDatabase, clock: TestClock) {
    this.db = db;
    this.clock = clock;
  }

  start(cron: readonly CronInput[], options: Partial<CronOptions> & { pool?: Pool } = {}): TestScheduler {
    const { pool = testPool(this.db.url, 2), ...others } = options;
    const heard: Heard[] = [];
    const troubles: CronTrouble[] = [];
    const emitter = new EventEmitter();
    const emit = makeEmit(emitter, {} as never, (error) => {
      throw error;
    });
    const record = Object.assign(
      ((name, payload) => {
        heard.push([name, payload] as Heard);
        emit(name, payload);
      }) as Emit,
      { heard: () => true },
    );
    const items = parseCron(cron);
    const running = startCron({
      items: () => items,
      database: poolDatabase(pool, { schema: this.db.schema, preparedStatements: true }),
      emit: record,
      clock: this.clock,
      onTrouble: (trouble) => troubles.push(trouble),
      ...others,
    });
    onTestFinished(() => running.release());
    return { cron: running, heard, troubles };
  }

  /** Says since when an entry has been known, and when it last ran. */
  async know(identifier: string, since: string, lastExecution: string | null = null): Promise<void> {
    await this.db.query(
      `insert into graphile_worker._private_known_crontabs (identifier, known_since, last_execution) values ($1, $2, $3)
       on conflict (identifier) do update set known_since = excluded.known_since, last_execution = excluded.last_execution`,
      [identifier, since, lastExecution],
    );
  }

  async lastExecution(identifier: string): Promise<string | null> {
    const [row] = await this.db.query<{ last_execution: Date | null }>(
      "select last_execution from graphile_worker._private_known_crontabs where identifier = $1",
      [identifier],
    );
    return row?.last_execution?.toISOString() ?? null;
  }

  /** The moments of a task's jobs, in the order they were added; those back-filled carry a star. */
  async runs(task = "task"): Promise<string[]> {
    const jobs = await this.db.jobs();
    return jobs.filter((job) => job.task_identifier === task).map(describeRun);
  }
}

export async function cronBench(start: string): Promise<CronBench> {
  return new CronBench(await freshDatabase(), new TestClock(start));
}

export function markOf(job: JobRow): CronMark {
  return (job.payload as { _cron: CronMark })._cron;
}

function describeRun(job: JobRow): string {
  const { ts, backfilled } = markOf(job);
  return `${ts.slice(0, 19)}${backfilled ? "*" : ""}`;
}
