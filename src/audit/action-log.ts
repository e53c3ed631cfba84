import { inspect } from "node:util";
import type { Database } from "../db/database.ts";
import {
  type ActionRow,
  beginAction,
  deleteActions,
  getAction,
  listActions,
  reportAction,
  stopAction,
} from "../db/statements/audit.ts";
import { JobSpecError } from "../errors.ts";
import { checkInteger, checkJobId } from "../job-checks.ts";

/** Something that was done by hand: who, what, when, and how much it changed. */
export interface LoggedAction extends ActionRow {}

export interface NewAction {
  /** Who does it. */
  readonly by?: string | null | undefined;
  /** Such as `retry` or `pause`. */
  readonly action: string;
  /** What it is done to, and with which values; shown in the audit, so without secrets. */
  readonly target: { readonly [name: string]: unknown };
}

export interface ActionReport {
  readonly matched?: number | undefined;
  readonly changed: number;
  /** Ends the action. */
  readonly outcome?: "done" | "stopped" | "failed" | undefined;
  readonly message?: string | undefined;
}

export interface ActionFilter {
  readonly by?: string | undefined;
  readonly action?: string | undefined;
}

export interface ActionPageOptions {
  /** From 1 to 1000, 50 if left out. */
  readonly limit?: number | undefined;
  /** The `next` of the page before. */
  readonly after?: string | null | undefined;
}

export interface ActionPage {
  /** Newest first. */
  readonly actions: readonly LoggedAction[];
  readonly next: string | null;
}

/** The audit: what was done by hand. The dashboard writes it; tools of your own can as well. */
export interface ActionLog {
  /** Writes down that an action begins. Report on it until it has an outcome; without a report for a minute it counts as interrupted. */
  beginAction(action: NewAction): Promise<LoggedAction>;
  /** Writes down how far an action is. The answer tells who has asked for a stop (`stop_asked_by`); null if it has ended already. */
  reportAction(id: string, report: ActionReport): Promise<LoggedAction | null>;
  /** Asks an action to stop, in whichever process it runs; null if it has ended already. */
  stopAction(id: string, by?: string): Promise<LoggedAction | null>;
  /** One action, or null. */
  getAction(id: string): Promise<LoggedAction | null>;
  /** One page of actions, newest first. */
  listActions(filter?: ActionFilter, page?: ActionPageOptions): Promise<ActionPage>;
  /** Deletes what began before a moment, and returns how much that was. */
  deleteActions(before: Date): Promise<number>;
}

export function makeActionLog(database: Pick<Database, "run">): ActionLog {
  return {
    async beginAction({ by, action, target }) {
      if (typeof action !== "string" || action === "")
        throw new JobSpecError(`'action' must be a name such as 'retry', got ${inspect(action)}.`);
      const [row] = await database.run(beginAction, { by: by ?? null, action, target: keepable(target) });
      return row!;
    },
    async reportAction(id, { matched, changed, outcome, message }) {
      const figures = { matched: matched ?? changed, changed };
      const params = { id: checkJobId(id), ...figures, outcome: outcome ?? null, message: message ?? null };
      return (await database.run(reportAction, params))[0] ?? null;
    },
    stopAction: async (id, by) => (await database.run(stopAction, { id: checkJobId(id), by: by ?? null }))[0] ?? null,
    getAction: async (id) => (await database.run(getAction, { id: checkJobId(id) }))[0] ?? null,
    async listActions({ by, action } = {}, { limit = 50, after } = {}) {
      const size = checkInteger("limit", limit, 1, 1000);
      const before = after === undefined || after === null ? null : checkJobId(after);
      const rows = await database.run(listActions, {
        by: by ?? null,
        action: action ?? null,
        before,
        limit: size + 1,
      });
      const actions = rows.slice(0, size);
      return { actions, next: rows.length > size ? actions.at(-1)!.id : null };
    },
    async deleteActions(before) {
      if (Number.isNaN(before.getTime())) throw new JobSpecError("'before' must be a valid date.");
      return (await database.run(deleteActions, { before })).length;
    },
  };
}

/** PostgreSQL keeps neither NUL nor half of a surrogate pair, and a value that cannot be kept must not keep an action from being written down. */
function keepable(target: object): object {
  const text = JSON.stringify(target, (_key, value: unknown) =>
    typeof value === "string" ? value.replaceAll("\0", "\ufffd").replace(/\p{Surrogate}/gu, "\ufffd") : value,
  );
  return JSON.parse(text) as object;
}
