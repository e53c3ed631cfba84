import { onTestFinished } from "vitest";
import { makeWorkerUtils } from "../../src/index.ts";
import type { TaskHelpers as JobHelpers } from "../../src/task.ts";
import type { TestDatabase } from "../support/database.ts";
import { until } from "../support/wait.ts";

export async function utilsOf(db: TestDatabase): ReturnType<typeof makeWorkerUtils> {
  const utils = await makeWorkerUtils({ connectionString: db.url });
  onTestFinished(() => utils.release());
  return utils;
}

/** A task that runs until its signal fires, and then throws its reason. */
export interface ObedientTask {
  readonly started: JobHelpers[];
  task(payload: unknown, helpers: JobHelpers): Promise<void>;
  begun(count: number): Promise<JobHelpers>;
}

export function obedientTask(): ObedientTask {
  const started: JobHelpers[] = [];
  return {
    started,
    task: (_payload, helpers) => {
      started.push(helpers);
      return helpers.abortPromise;
    },
    begun: async (count) => {
      await until(() => started.length >= count, { what: `${count} jobs have begun` });
      return started[count - 1]!;
    },
  };
}

/** A task that ignores its signal until the test lets it go. */
export interface StubbornTask {
  readonly started: JobHelpers[];
  task(payload: unknown, helpers: JobHelpers): Promise<void>;
  begun(count: number): Promise<JobHelpers>;
  release(index: number): void;
}

export function stubbornTask(): StubbornTask {
  const started: JobHelpers[] = [];
  const ends: (() => void)[] = [];
  onTestFinished(() => {
    for (const end of ends) end();
  });
  return {
    started,
    task: (_payload, helpers) =>
      new Promise<void>((resolve) => {
        started.push(helpers);
        ends.push(resolve);
      }),
    begun: async (count) => {
      await until(() => started.length >= count, { what: `${count} jobs have begun` });
      return started[count - 1]!;
    },
    release: (index) => ends[index]!(),
  };
}

export interface Cancellation {
  readonly reason: string | null;
  readonly cancelled_by: string | null;
  readonly outcome: string | null;
  readonly task_identifier: string | null;
}

export async function cancellationOf(db: TestDatabase, id: string): Promise<Cancellation | undefined> {
  const [row] = await db.query("select * from graphile_worker._hathi_job_cancellations where job_id = $1", [id]);
  return row as unknown as Cancellation | undefined;
}
