import { fileURLToPath } from "node:url";
import { type Job, type LogFunctionFactory, Logger } from "graphile-worker";
import pg from "pg";

export const connectionString = process.env.DATABASE_URL ?? "postgres:///app";

export const here = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

export const lines: string[] = [];
const logFactory: LogFunctionFactory = (scope) => (level, message) => {
  if (level !== "debug") lines.push(`${level} ${scope.label ?? "core"} ${scope.taskIdentifier ?? "-"}: ${message}`);
};
export const logger = new Logger(logFactory);

export const pool = new pg.Pool({ connectionString });
pool.on("error", () => undefined);
pool.on("connect", (client) => client.on("error", () => undefined));

/** What does not depend on the moment. */
export function shape(job: Job): object {
  const { id, task_id, job_queue_id, run_at, created_at, updated_at, locked_at, locked_by, ...rest } = job;
  const types = { id: typeof id, taskId: typeof task_id, queueId: typeof job_queue_id, runAt: run_at instanceof Date };
  return { ...rest, ...types, created: created_at <= updated_at, locked: [locked_at, locked_by] };
}
