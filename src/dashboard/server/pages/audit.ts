import type { LoggedAction } from "../../../index.ts";
import { type AuditPage, type AuditRow, type JobQuery, jobActionNames } from "../../contract.ts";
import type { Page } from "../context.ts";
import { describeFilter, readLimit, toSearch } from "../queries.ts";
import { Fields } from "../read-fields.ts";
import { redactKey } from "../redact.ts";
import { moment } from "../rows.ts";

export const audit: Page<AuditPage> = async ({ redact, cache, utils }, { query }) => {
  const fields = new Fields(query, ["by", "action", "after", "limit"]);
  const filter = { by: fields.optionalText("by"), action: fields.optionalText("action") };
  const page = { after: fields.optionalId("after"), limit: readLimit(fields) };
  const { actions, next } = await cache.get(`audit ${JSON.stringify(query)}`, 900, () =>
    utils.listActions(filter, page),
  );
  return { now: moment(new Date()), entries: actions.map((action) => toAuditRow(action, redact)), next };
};

/** What the audit keeps of what an action was done to. */
export interface AuditTarget {
  readonly ids?: readonly string[] | undefined;
  readonly filter?: JobQuery | undefined;
  readonly task?: string | undefined;
  readonly kind?: string | undefined;
  readonly name?: string | undefined;
  readonly [further: string]: unknown;
}

function toAuditRow(action: LoggedAction, hidden: readonly string[]): AuditRow {
  const target = action.target as AuditTarget;
  return {
    id: action.id,
    at: moment(action.started_at),
    by: action.done_by,
    action: action.action,
    target: describeTarget(action.action, target, hidden),
    link: linkOf(action.action, target),
    state: action.state,
    changed: action.changed,
    message: action.message,
  };
}

/** In words: "job 42", "dead jobs of task 'mail'". */
function describeTarget(action: string, target: AuditTarget, hidden: readonly string[]): string {
  const { ids, filter, kind, name, task } = target;
  if (filter) return describeFilter(filter);
  if (ids) return ids.length === 1 ? `job ${ids[0]}` : `${ids.length.toLocaleString("en")} jobs: ${some(ids)}`;
  if (nouns[action] === "limit") return describeLimit(target, hidden);
  if (kind === "all") return "everything";
  if (name !== undefined) return `${kind ?? nouns[action] ?? ""} '${name}'`.trimStart();
  if (task !== undefined) return `task '${task}'`;
  return action;
}

/** "concurrency limit 'sync' by tenantId for 'acme'" */
export function describeLimit(
  { name, kind, path, key }: Pick<AuditTarget, "name" | "kind"> & { readonly path?: unknown; readonly key?: unknown },
  hidden: readonly string[],
): string {
  const parts = Array.isArray(path) ? path.map(String) : [];
  const by = parts.length > 0 ? ` by ${parts.join(".")}` : "";
  const whose = typeof key === "string" ? ` for '${redactKey(key, parts, hidden)}'` : "";
  return `${kind ?? ""} limit '${name}'${by}${whose}`.trimStart();
}

const nouns: Readonly<Record<string, string>> = {
  setLimit: "limit",
  clearLimit: "limit",
  runCron: "crontab entry",
  unlockWorker: "worker",
};

function some(ids: readonly string[]): string {
  return ids.length > 5 ? `${ids.slice(0, 5).join(", ")} …` : ids.join(", ");
}

function linkOf(action: string, { ids, filter, kind }: AuditTarget): string | null {
  if (filter) return `jobs${toSearch(filter)}`;
  if (ids?.length === 1) return `jobs/${ids[0]}`;
  if ((jobActionNames as readonly string[]).includes(action)) return null;
  if (kind === "cron" || action === "runCron") return "cron";
  if (kind === "worker" || action === "unlockWorker") return "workers";
  return kind || action.endsWith("Limit") ? "limits" : null;
}
