import { inspect } from "node:util";
import { JobSpecError } from "./errors.ts";
import { clip } from "./util/clip.ts";

/** How far a job is. */
export interface JobProgress {
  /** So much is done… */
  readonly done: number;
  /** …of so much; null if the task does not know. A share from 0 to 1 is of 1. */
  readonly total: number | null;
  readonly note: string | null;
}

/** The same, and when it was written. */
export interface ReportedProgress extends JobProgress {
  readonly reported_at: Date;
}

/** What a task may report: a share from 0 to 1, or how much is done. */
export type ProgressReport =
  | number
  | { readonly done: number; readonly total?: number | undefined; readonly note?: string | undefined };

const maxNoteBytes = 1_000;

/** Reads what a task reported; throws a sentence for what is no progress. */
export function readReport(report: unknown): JobProgress {
  if (typeof report === "number") {
    if (Number.isFinite(report)) return { done: Math.min(1, Math.max(0, report)), total: 1, note: null };
  } else if (typeof report === "object" && report !== null) {
    const { done, total = null, note = null } = report as { done?: unknown; total?: unknown; note?: unknown };
    if (isAmount(done) && (total === null || isAmount(total)) && (note === null || typeof note === "string")) {
      return { done, total, note: note === null ? null : clip(note.replaceAll("\0", ""), maxNoteBytes) };
    }
  }
  throw new JobSpecError(
    `Progress must be a share from 0 to 1 or { done, total, note } with amounts from 0 up, got ${inspect(report, { depth: 0 })}.`,
  );
}

function isAmount(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
}

/** Progress as a database hands it over in JSON. */
export function toReported(row: (JobProgress & { readonly reported_at: string }) | null): ReportedProgress | null {
  return row && { ...row, reported_at: new Date(row.reported_at) };
}
