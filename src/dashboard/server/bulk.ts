import type { JobFilter, LoggedAction } from "../../index.ts";
import { type BulkPreview, type BulkRun, type JobActionName, type JobQuery, jobActionNames } from "../contract.ts";
import { describeChange, jobActions } from "./actions/job-actions.ts";
import type { Caller } from "./authenticate.ts";
import type { DashboardContext, Page } from "./context.ts";
import type { AuditTarget } from "./pages/audit.ts";
import { describeFilter, readJobFilter } from "./queries.ts";
import { Fields } from "./read-fields.ts";
import { badRequest, Refusal, refusalOf } from "./refusal.ts";
import { moment } from "./rows.ts";
import { ScanPace } from "./scan-pace.ts";

/** Jobs that are changed by one statement. */
const chunk = 500;
/** So many run at once in this process. */
const mostRuns = 3;

interface Asked {
  readonly action: JobActionName;
  readonly query: JobQuery;
  readonly filter: JobFilter;
}

function readAsked(fields: Fields, redact: readonly string[]): Asked {
  const action = fields.oneOf("action", jobActionNames);
  const query = fields.raw("filter") ?? {};
  const filter = readJobFilter(query, redact);
  const isSaid = Object.entries(filter).some(([name, value]) => name !== "redact" && value !== undefined);
  if (!isSaid) throw badRequest("Say which jobs are meant: a filter that is empty would mean all of them.");
  return { action, query: query as JobQuery, filter };
}

/** What a bulk action needs. */
export function permissionOf(body: unknown): JobActionName {
  const { action } = (typeof body === "object" && body !== null ? body : {}) as { action?: unknown };
  const found = jobActionNames.find((name) => name === action);
  if (!found) throw badRequest(`'action' must be one of ${jobActionNames.join(", ")}.`);
  return found;
}

/** Counts how many jobs match, a bit at a time: the number is exact when it is complete. */
export async function previewBulk({ utils, redact }: DashboardContext, body: unknown): Promise<BulkPreview> {
  const fields = new Fields(body, ["action", "filter", "upTo", "cursor", "count"]);
  const { query, filter } = readAsked(fields, redact);
  const upTo = fields.optionalId("upTo") ?? (await utils.listJobs({}, { limit: 1 })).jobs[0]?.id ?? "0";
  let count = fields.optionalInteger("count", 0, Number.MAX_SAFE_INTEGER) ?? 0;
  let cursor: string | null = fields.optionalId("cursor") ?? null;
  const pace = new ScanPace(filter);
  do {
    const { ids, next } = await pace.time(() =>
      utils.scanJobs({ ...filter, upTo }, { after: cursor, lookAt: pace.step }),
    );
    count += ids.length;
    cursor = next;
  } while (cursor !== null && pace.hasTime);
  return { count, isComplete: cursor === null, cursor, upTo, target: describeFilter(query) };
}

/** Actions on all jobs that match. They run here in the background; how far they are is in the database, so any process can tell or stop them. */
export class BulkRuns {
  readonly #context: DashboardContext;
  readonly #onError: (error: unknown) => void;
  readonly #stop = new AbortController();
  readonly #running = new Set<Promise<void>>();

  constructor(context: DashboardContext, onError: (error: unknown) => void) {
    this.#context = context;
    this.#onError = onError;
  }

  async start(body: unknown, caller: Caller): Promise<BulkRun> {
    const { utils, redact } = this.#context;
    const further = jobActions[permissionOf(body)].fields;
    const fields = new Fields(body, ["action", "filter", "upTo", ...further]);
    const { action, query, filter } = readAsked(fields, redact);
    const upTo = fields.id("upTo");
    const { change, values } = jobActions[action].prepare(fields);
    if (this.#running.size >= mostRuns) {
      throw new Refusal("conflict", `${mostRuns} actions on many jobs are running already; wait until one has ended.`);
    }
    const target: AuditTarget = { filter: query, upTo, ...values };
    const begun = await utils.beginAction({ by: caller.name, action, target });
    const running = this.#run(begun.id, action, { ...filter, upTo }, (ids) => change(utils, ids))
      .catch(this.#onError)
      .finally(() => this.#running.delete(running));
    this.#running.add(running);
    return toBulkRun(begun);
  }

  /** Stops what runs here; it is written down that it was. */
  async close(): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#running);
  }

  async #run(
    id: string,
    action: JobActionName,
    filter: JobFilter,
    change: (ids: readonly string[]) => Promise<readonly unknown[]>,
  ): Promise<void> {
    const { utils, cache } = this.#context;
    const pace = new ScanPace(filter);
    let [matched, changed] = [0, 0];
    let after: string | null = null;
    try {
      do {
        const scan = await pace.time(() => utils.scanJobs(filter, { after, lookAt: pace.step }));
        for (let start = 0; ; start += chunk) {
          const ids = scan.ids.slice(start, start + chunk);
          if (ids.length > 0) changed += (await change(ids)).length;
          matched += ids.length;
          const known = await utils.reportAction(id, { matched, changed });
          if (!known || known.stop_asked_by !== null || this.#stop.signal.aborted) {
            const by = known?.stop_asked_by ?? "the end of its process";
            const message = `Stopped by ${by} after ${changed.toLocaleString("en")} jobs.`;
            await utils.reportAction(id, { matched, changed, outcome: "stopped", message });
            return;
          }
          if (start + chunk >= scan.ids.length) break;
        }
        after = scan.next;
      } while (after !== null);
      await utils.reportAction(id, {
        matched,
        changed,
        outcome: "done",
        message: describeChange(action, changed, matched),
      });
    } catch (error) {
      const message = refusalOf(error)?.message ?? "It failed because of a mistake; the server's log tells more.";
      await utils.reportAction(id, { matched, changed, outcome: "failed", message }).catch(() => undefined);
      throw error;
    } finally {
      cache.markStale();
    }
  }
}

export const bulk: Page<BulkRun> = async ({ utils }, { query }) => {
  const id = new Fields(query, ["id"]).id("id");
  const action = await utils.getAction(id);
  return toBulkRun(checkBulk(action));
};

/** The permission that stopping needs is that of the action. */
export async function findBulk({ utils }: DashboardContext, body: unknown): Promise<LoggedAction> {
  return checkBulk(await utils.getAction(new Fields(body, ["id"]).id("id")));
}

export async function stopBulk({ utils }: DashboardContext, { id }: LoggedAction, caller: Caller): Promise<BulkRun> {
  const asked = await utils.stopAction(id, caller.name ?? undefined);
  return toBulkRun(asked ?? checkBulk(await utils.getAction(id)));
}

function checkBulk(action: LoggedAction | null): LoggedAction {
  if (action && "filter" in action.target) return action;
  throw new Refusal("not-found", "There is no such action on many jobs.");
}

function toBulkRun(action: LoggedAction): BulkRun {
  return {
    id: action.id,
    action: action.action as JobActionName,
    target: describeFilter((action.target as AuditTarget).filter ?? {}),
    by: action.done_by,
    state: action.state,
    startedAt: moment(action.started_at),
    finishedAt: moment(action.finished_at),
    matched: action.matched,
    changed: action.changed,
    isStopping: action.state === "running" && action.stop_asked_by !== null,
    message: action.message,
  };
}
