import { appendFileSync } from "node:fs";
import type { JobHelpers } from "graphile-worker";

/** Leaves a row that tells what a task was given. */
export async function leaveEffect(payload: unknown, { job, query }: JobHelpers, extra: object = {}): Promise<void> {
  await query("insert into app.effects (task, attempt, payload, extra) values ($1, $2, $3::json, $4::json)", [
    job.task_identifier,
    job.attempts,
    JSON.stringify(payload),
    JSON.stringify(extra),
  ]);
}

/** Leaves a line in the file that PLUGIN_LOG names. */
export function leaveLine(line: string): void {
  if (process.env.PLUGIN_LOG) appendFileSync(process.env.PLUGIN_LOG, `${line}\n`);
}
