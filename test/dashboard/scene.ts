import { onTestFinished } from "vitest";
import { z } from "zod";
import { type ServeDashboardOptions, serveDashboard } from "../../src/dashboard/server/index.ts";
import {
  defineTask,
  makeWorkerUtils,
  parseCrontab,
  type QueueUtils,
  type RunnerOptions,
  run,
  type TaskList,
} from "../../src/index.ts";
import { makeMetrics } from "../../src/metrics/index.ts";
import { deferred } from "../../src/util/deferred.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";

export interface Scene {
  readonly database: TestDatabase;
  readonly utils: QueueUtils;
  /** With the token in it. */
  readonly url: string;
  /** Lets the jobs of `held` end. */
  readonly release: () => void;
  readonly tasks: TaskList;
}

interface SceneOptions {
  /** Further tasks of the worker. */
  readonly tasks?: TaskList;
  readonly taskOptions?: RunnerOptions["taskOptions"];
  readonly dashboard?: Partial<ServeDashboardOptions>;
  readonly concurrency?: number;
}

/** A database, a worker that runs jobs, and a dashboard over both. */
export async function makeScene({
  tasks: further = {},
  taskOptions,
  dashboard = {},
  concurrency = 4,
}: SceneOptions = {}): Promise<Scene> {
  const database = await freshDatabase();
  const { logger } = rememberingLogger();
  const gate = deferred();
  const tasks: TaskList = {
    "mail/send": () => undefined,
    "invoice/pdf": () => {
      throw new TypeError("total is undefined");
    },
    held: () => gate.promise,
    order: defineTask({
      identifier: "order",
      payload: z.object({
        amount: z.number(),
        note: z.string().optional(),
        size: z.enum(["small", "large"]).default("small"),
        lines: z.array(z.object({ sku: z.string() })).optional(),
      }),
      run: () => undefined,
    }),
    ...further,
  };
  const cronItems = parseCrontab("0 4 * * * mail/send ?id=nightly");
  const utils = await makeWorkerUtils({ pgPool: database.pool, logger });
  onTestFinished(() => utils.release());
  const runner = await run({
    pgPool: database.pool,
    logger,
    taskList: tasks,
    ...(taskOptions && { taskOptions }),
    parsedCronItems: cronItems,
    concurrency,
    pollInterval: 100,
    history: "full",
    recovery: true,
    appVersion: "4.2.0",
    metrics: makeMetrics(),
    noHandleSignals: true,
  });
  onTestFinished(async () => {
    gate.resolve();
    await runner.stop();
  });
  const served = await serveDashboard({
    connectionString: database.url,
    logger,
    port: 0,
    tasks,
    cronItems,
    title: "test",
    ...dashboard,
  });
  onTestFinished(() => served.close());
  return { database, utils, url: served.url, release: () => gate.resolve(), tasks };
}
