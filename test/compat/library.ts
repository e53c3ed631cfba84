import { EventEmitter } from "node:events";
import { onTestFinished } from "vitest";
import type * as hathi from "../../src/index.ts";
import { originalEntry } from "./original.ts";

/** Either library, by the names that both have; the original is used through our types, which is what a drop-in means. */
export type Library = Pick<
  typeof hathi,
  | "run"
  | "runOnce"
  | "runTaskList"
  | "runTaskListOnce"
  | "runMigrations"
  | "makeWorkerUtils"
  | "parseCrontab"
  | "parseCronItem"
  | "parseCronItems"
  | "getCronItems"
  | "Logger"
  | "consoleLogFactory"
>;

export async function loadLibrary(isOurs: boolean): Promise<Library> {
  if (isOurs) return import("../../src/index.ts");
  return (await import(/* @vite-ignore */ originalEntry("0.18"))) as Library;
}

/** Options that keep a library quiet, out of the way of signals, and observed. */
export function observed({ Logger }: Library) {
  const emitter = new EventEmitter();
  const heard: { name: string; payload: Record<string, unknown> }[] = [];
  for (const name of watched) {
    emitter.on(name, (payload) => heard.push({ name, payload }));
  }
  return {
    heard,
    count: (name: string): number => heard.filter((event) => event.name === name).length,
    options: {
      events: emitter as unknown as hathi.WorkerEvents,
      logger: new Logger(() => () => undefined),
      noHandleSignals: true,
    },
  };
}

/** A task that stays in each job until it is let go, or for good. */
export function held({ forGood = false } = {}) {
  const payloads: unknown[] = [];
  const jobs: hathi.Job[] = [];
  const releases: (() => void)[] = [];
  onTestFinished(() => {
    if (!forGood) for (const release of releases) release();
  });
  const task = (payload: unknown, { job }: hathi.JobHelpers): Promise<void> => {
    payloads.push(payload);
    jobs.push(job);
    return new Promise((resolve) => releases.push(resolve));
  };
  return { task, payloads, jobs, releases };
}

const watched = [
  "pool:create",
  "pool:listen:connecting",
  "pool:listen:success",
  "pool:listen:error",
  "pool:listen:notification",
  "pool:listen:release",
  "pool:release",
  "pool:gracefulShutdown",
  "pool:gracefulShutdown:error",
  "pool:gracefulShutdown:complete",
  "pool:forcefulShutdown",
  "pool:forcefulShutdown:error",
  "pool:forcefulShutdown:complete",
  "localQueue:init",
  "localQueue:setMode",
  "localQueue:refetchDelay:start",
  "localQueue:refetchDelay:expired",
  "localQueue:getJobs:complete",
  "localQueue:returnJobs",
  "worker:create",
  "worker:release",
  "worker:stop",
  "worker:getJob:start",
  "worker:getJob:empty",
  "job:start",
  "job:success",
  "job:error",
  "job:failed",
  "job:complete",
  "cron:starting",
  "cron:started",
  "cron:backfill",
  "cron:prematureTimer",
  "cron:overdueTimer",
  "cron:schedule",
  "cron:scheduled",
  "resetLocked:started",
  "resetLocked:success",
  "stop",
];
