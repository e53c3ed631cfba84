import type { ParsedCronItem, QueueUtils, TaskList } from "../../index.ts";
import type { AnswerCache } from "./answer-cache.ts";
import type { Caller } from "./authenticate.ts";

/** What the dashboard's pages and actions work with. */
export interface DashboardContext {
  readonly utils: QueueUtils;
  readonly cache: AnswerCache;
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
export interface PageRequest {
  /** The query of the address. */
  readonly query: Readonly<Record<string, string>>;
  readonly caller: Caller;
}

/** A page's snapshot. */
export type Page<T> = (context: DashboardContext, request: PageRequest) => Promise<T>;
