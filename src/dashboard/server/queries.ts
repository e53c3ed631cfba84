import type { HistoryFilter, JobFilter } from "../../index.ts";
import { type HistoryQuery, type JobQuery, jobStates, outcomes, type Span, spans } from "../contract.ts";
import { Fields } from "./read-fields.ts";

/* What stands in the query of an address, checked. */

const jobFields = ["state", "task", "queue", "key", "search", "error", "since", "until"];
const historyFields = ["task", "queue", "key", "outcome", "error", "since", "until"];
const pageFields = ["after", "limit"];

export interface PageQuery {
  readonly after: string | undefined;
  readonly limit: number;
}

/** The filter that a query stands for; secrets are not found by searching for them. */
export function readJobFilter(values: unknown, redact: readonly string[], further: readonly string[] = []): JobFilter {
  const fields = new Fields(values, [...jobFields, ...further]);
  return {
    state: fields.optionalOneOf("state", jobStates),
    task: fields.optionalText("task"),
    queue: fields.optionalText("queue"),
    key: fields.optionalText("key"),
    search: fields.optionalText("search"),
    error: fields.optionalText("error"),
    since: fields.optionalMoment("since"),
    until: fields.optionalMoment("until"),
    redact,
  };
}

export function readJobQuery(values: unknown, redact: readonly string[]): { filter: JobFilter; page: PageQuery } {
  const filter = readJobFilter(values, redact, pageFields);
  const fields = new Fields(values, [...jobFields, ...pageFields]);
  return { filter, page: { after: fields.optionalId("after"), limit: readLimit(fields) } };
}

export function readHistoryQuery(values: unknown): { filter: HistoryFilter; page: PageQuery } {
  const fields = new Fields(values, [...historyFields, ...pageFields]);
  const filter = {
    task: fields.optionalText("task"),
    queue: fields.optionalText("queue"),
    key: fields.optionalText("key"),
    outcome: fields.optionalOneOf("outcome", outcomes),
    fingerprint: fields.optionalText("error"),
    since: fields.optionalMoment("since"),
    until: fields.optionalMoment("until"),
  };
  return { filter, page: { after: fields.optionalText("after"), limit: readLimit(fields) } };
}

export function readLimit(fields: Fields): number {
  return fields.optionalInteger("limit", 1, 200) ?? 50;
}

export function readSpan(fields: Fields, otherwise: Span): Span {
  return fields.optionalOneOf("span", spans) ?? otherwise;
}

/** A filter in words: "dead jobs of task 'mail'". */
export function describeFilter({ state, task, queue, key, search, error, since, until }: JobQuery): string {
  const parts = [
    task && `of task '${task}'`,
    queue && `in queue '${queue}'`,
    key && `with the key '${key}'`,
    search && `with '${search}'`,
    error && `that failed with error ${error}`,
    since && `added since ${since}`,
    until && `added before ${until}`,
  ].filter(Boolean);
  const subject = state ? `${state} jobs` : "all jobs";
  return [subject, ...parts].join(" ");
}

/** A query as an address has it. */
export function toSearch(query: JobQuery | HistoryQuery): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => typeof entry[1] === "string");
  // The database returns them in an order of its own.
  given.sort(([a], [b]) => jobFields.indexOf(a) - jobFields.indexOf(b));
  return given.length === 0 ? "" : `?${new URLSearchParams(given).toString()}`;
}
