import type { ActionResult } from "../../contract.ts";
import type { Caller } from "../authenticate.ts";
import type { DashboardContext } from "../context.ts";
import { refusalOf } from "../refusal.ts";
import type { Action, ActionName } from "./action.ts";
import { addJob } from "./add-job.ts";
import { runCron, unlockWorker } from "./cron-and-workers.ts";
import { actionById } from "./job-actions.ts";
import { clearLimit, setLimit } from "./limits.ts";
import { pause, resume } from "./pauses.ts";

/** Every action; each needs the permission of its name. */
export const actions: Readonly<Record<ActionName, Action>> = {
  retry: actionById("retry"),
  runNow: actionById("runNow"),
  reschedule: actionById("reschedule"),
  cancel: actionById("cancel"),
  fail: actionById("fail"),
  remove: actionById("remove"),
  add: addJob,
  pause,
  resume,
  runCron,
  setLimit,
  clearLimit,
  unlockWorker,
};

/** Writes an action down, carries it out, and writes down what became of it. */
export async function carryOut(
  context: DashboardContext,
  name: ActionName,
  body: unknown,
  caller: Caller,
): Promise<ActionResult> {
  const { target, run } = actions[name](context, body, caller);
  const { id } = await context.utils.beginAction({ by: caller.name, action: name, target });
  try {
    const { changed, ids = [], message } = await run();
    await context.utils.reportAction(id, { changed, outcome: "done", message });
    return { audit: id, changed, ids, message };
  } catch (error) {
    const message = refusalOf(error)?.message ?? "It failed because of a mistake; the server's log tells more.";
    // The answer already says what went wrong; an entry without an end is better than an answer that hides it.
    await context.utils.reportAction(id, { changed: 0, outcome: "failed", message }).catch(() => undefined);
    throw error;
  } finally {
    context.cache.markStale();
  }
}
