import type { ParsedCronItem, QueueUtils, TaskList } from "../../index.ts";
import type { Span } from "../contract.ts";
import type { Caller } from "./authenticate.ts";
import type { Shelf } from "./shelf.ts";

/** What the dashboard's pages and actions work with. */
export interface Desk {
  readonly utils: QueueUtils;
  readonly shelf: Shelf;
  readonly title: string | null;
  readonly redact: readonly string[];
  readonly tasks: TaskList;
  readonly cronItems: readonly ParsedCronItem[];
  readonly timeZone: string | undefined;
  readonly isReadOnly: boolean;
  /** Has running and dead jobs indexed, in the background, once there are very many jobs. */
  readonly keepIndexed: () => void;
  /** The database's name. */
  readonly database: string;
}

/** What was asked for, and by whom. */
export interface Question {
  /** The query of the address. */
  readonly query: Readonly<Record<string, string>>;
  readonly caller: Caller;
}

/** A page's snapshot. */
export type Page<T> = (desk: Desk, question: Question) => Promise<T>;

const minute = 60_000;

/** How far a page looks back, and in which steps: as finely as times are kept. */
export const spanSteps: Readonly<Record<Span, { readonly sinceMs: number; readonly stepMs: number }>> = {
  "15m": { sinceMs: 15 * minute, stepMs: minute },
  "1h": { sinceMs: 60 * minute, stepMs: minute },
  "3h": { sinceMs: 180 * minute, stepMs: 3 * minute },
  "1d": { sinceMs: 1_440 * minute, stepMs: 60 * minute },
  "3d": { sinceMs: 3 * 1_440 * minute, stepMs: 60 * minute },
  "30d": { sinceMs: 30 * 1_440 * minute, stepMs: 1_440 * minute },
};
