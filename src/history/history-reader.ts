import type { Database } from "../db/database.ts";
import { undefinedFunction } from "../db/sqlstate.ts";
import { type ErrorGroupRow, listAllErrorGroups, listErrorGroups } from "../db/statements/error-groups.ts";
import { type FoundHistoryRow, findHistory, type HistoryRow, listHistory } from "../db/statements/history.ts";
import { findLinks, type LinkedJobRow } from "../db/statements/links.ts";
import { codeOf, JobSpecError } from "../errors.ts";
import { checkInteger, checkJobId, type JobId } from "../job-checks.ts";
import { suggestion } from "../util/nearest.ts";

export type HistoryOutcome = HistoryRow["outcome"];

/** How one attempt of a job ended. */
export interface HistoryEntry extends HistoryRow {}

/** The same with what was kept beside it. */
export interface JobHistoryEntry extends HistoryEntry {
  /** Where a failure was thrown: the frames of its stack and of its causes, 4 kB at most. Null if nothing is known of it. */
  readonly stack: string | null;
  /** With `history: "full"`. */
  readonly payload: unknown;
  /** With `keepResult`. */
  readonly result: unknown;
}

/** Which attempts are meant; what is left out does not matter. */
export interface HistoryFilter {
  readonly task?: string | undefined;
  readonly queue?: string | undefined;
  readonly key?: string | undefined;
  readonly outcome?: HistoryOutcome | readonly HistoryOutcome[] | undefined;
  /** Failures of one group of `listErrors`. */
  readonly fingerprint?: string | undefined;
  /** Settled at this moment or later. */
  readonly since?: Date | undefined;
  /** Settled before this moment. */
  readonly until?: Date | undefined;
}

export interface HistoryPageOptions {
  /** Attempts on a page; from 1 to 1000, 50 if left out. */
  readonly limit?: number | undefined;
  /** The `next` of the page before. */
  readonly after?: string | null | undefined;
}

export interface HistoryPage {
  /** Newest first. */
  readonly entries: readonly HistoryEntry[];
  /** Give this as `after` for the next page; null on the last one. */
  readonly next: string | null;
}

/** Failures that are the same: of one task, one class of error and one place in the code. */
export interface ErrorGroup extends Omit<ErrorGroupRow, "trend"> {
  /** Failures in each step from `since` until now, of those that were looked at; empty without `steps`. */
  readonly trend: readonly number[];
}

export interface ListErrorsOptions {
  readonly task?: string | undefined;
  /** One group only. */
  readonly fingerprint?: string | undefined;
  readonly since?: Date | undefined;
  /**
   * Look at this many of the latest failures of each group at most, so that the answer comes quickly however many there are since `since`. 1000 if
   * left out.
   */
  readonly lookAt?: number | undefined;
  /** Into how many steps to divide the time since `since`, for `trend`; from 1 to 100. */
  readonly steps?: number | undefined;
  /** From 1 to 1000, 50 if left out. */
  readonly limit?: number | undefined;
}

/** A job that added another one, or was added by it. Null stands for what is no longer known. */
export interface LinkedJob extends Omit<LinkedJobRow, "is_child"> {}

export interface JobLinks {
  /** Jobs whose task added this one. There may be several if it has a key: each later one changed it. */
  readonly added_by: readonly LinkedJob[];
  /** Jobs that this one's task has added, in all of its attempts. */
  readonly added: readonly LinkedJob[];
  /** It has added more than these. */
  readonly has_more: boolean;
}

/** Reads what was kept of jobs. */
export interface HistoryReader {
  /** One page of how attempts ended, newest first. */
  listHistory(filter?: HistoryFilter, page?: HistoryPageOptions): Promise<HistoryPage>;
  /** Every attempt of a job that is kept, oldest first. */
  getJobHistory(id: JobId): Promise<JobHistoryEntry[]>;
  /** What added a job and what it has added, through the helpers of tasks whose history is kept; up to `limit` of each (20, if left out). */
  getJobLinks(id: JobId, options?: { readonly limit?: number | undefined }): Promise<JobLinks>;
  /** Failures in groups, the latest first. */
  listErrors(options?: ListErrorsOptions): Promise<ErrorGroup[]>;
}

export function makeHistoryReader(database: Pick<Database, "run">): HistoryReader {
  return {
    async listHistory(filter = {}, { limit = 50, after } = {}) {
      const size = checkInteger("limit", limit, 1, 1000);
      const rows = await database.run(listHistory, { ...paramsOf(filter), after: readPlace(after), limit: size + 1 });
      const shown = rows.slice(0, size);
      return {
        entries: shown.map(({ place: _place, ...entry }) => entry),
        next: rows.length > size ? shown.at(-1)!.place : null,
      };
    },
    async getJobHistory(id) {
      const rows = await database.run(findHistory, { ids: [checkJobId(id)] });
      return rows.map(toEntry);
    },
    async getJobLinks(id, { limit = 20 } = {}) {
      const size = checkInteger("limit", limit, 1, 1000);
      // A schema that was not brought up to date has none.
      const rows = await database.run(findLinks, { id: checkJobId(id), limit: size + 1 }).catch((error: unknown) => {
        if (codeOf(error) === undefinedFunction) return [];
        throw error;
      });
      const side = (isChild: boolean): LinkedJob[] =>
        rows.filter(({ is_child }) => is_child === isChild).map(({ is_child: _side, ...job }) => job);
      const added = side(true);
      return { added_by: side(false).slice(0, size), added: added.slice(0, size), has_more: added.length > size };
    },
    async listErrors({ task, fingerprint, since, limit = 50, lookAt, steps } = {}) {
      if (steps !== undefined && !since) throw new JobSpecError("'steps' needs 'since'.");
      const wanted = {
        task: task ?? null,
        fingerprint: fingerprint ?? null,
        limit: checkInteger("limit", limit, 1, 1000),
      };
      if (!since && lookAt === undefined) {
        const all = await database.run(listAllErrorGroups, wanted);
        return all.map((group) => ({ ...group, trend: [] }));
      }
      const groups = await database.run(listErrorGroups, {
        ...wanted,
        since: checkDate("since", since),
        lookAt: checkInteger("lookAt", lookAt ?? 1_000, 1, 1_000_000),
        steps: steps === undefined ? null : checkInteger("steps", steps, 1, 100),
      });
      return groups.map(({ trend, ...group }) => ({
        ...group,
        trend: Array.from({ length: steps ?? 0 }, (_, step) => trend?.[step + 1] ?? 0),
      }));
    },
  };
}

function toEntry({ created_at: _created, has_result: _has, ...entry }: FoundHistoryRow): JobHistoryEntry {
  return entry;
}

function readPlace(after: string | null | undefined): [string, string, string] | null {
  if (after === undefined || after === null) return null;
  const [, at, entry, id] = /^([\dT:.Z-]+)\/(\d+)\/(\d+)$/.exec(after) ?? [];
  if (at && entry && id) return [at, entry, id];
  throw new JobSpecError(`'after' must be the 'next' of the page before, got '${after}'.`);
}

const outcomes: readonly HistoryOutcome[] = ["succeeded", "failed", "permanentlyFailed", "cancelled", "snoozed"];

function checkOutcome(outcome: string): HistoryOutcome {
  const found = outcomes.find((known) => known === outcome);
  if (found) return found;
  throw new JobSpecError(
    `'${outcome}' is not an outcome: use one of ${outcomes.join(", ")}.${suggestion(outcome, outcomes)}`,
  );
}

function checkDate(name: string, date: Date | undefined): Date | null {
  if (date && Number.isNaN(date.getTime())) throw new JobSpecError(`'${name}' must be a valid date.`);
  return date ?? null;
}

function paramsOf({
  task,
  queue,
  key,
  outcome,
  fingerprint,
  since,
  until,
}: HistoryFilter): Omit<Parameters<typeof listHistory.values>[0], "after" | "limit"> {
  return {
    task: task ?? null,
    queue: queue ?? null,
    key: key ?? null,
    outcomes: outcome === undefined ? null : [outcome].flat().map(checkOutcome),
    fingerprint: fingerprint ?? null,
    since: checkDate("since", since),
    until: checkDate("until", until),
  };
}
