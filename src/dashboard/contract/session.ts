import type { Moment } from "./basics.ts";

/** What a person may be permitted to do beside reading. An action needs the permission of the same name. */
export const permissions = [
  "retry",
  "runNow",
  "reschedule",
  "cancel",
  "fail",
  "remove",
  "add",
  "pause",
  "resume",
  "runCron",
  "setLimit",
  "clearLimit",
  "unlockWorker",
] as const;
export type Permission = (typeof permissions)[number];

/** GET api/session */
export interface Session {
  readonly user: string | null;
  readonly can: readonly Permission[];
  /** No user may change anything here. */
  readonly isReadOnly: boolean;
  /** There is a session that `POST sign-out` ends. */
  readonly canSignOut: boolean;
  /** What the page calls this installation, such as "production". */
  readonly title: string | null;
  readonly database: string;
  readonly schema: string;
  readonly version: string;
  /** The server's clock. */
  readonly now: Moment;
  /** What there is to show. Without metrics there are no rates and percentiles, without history no finished jobs and errors. */
  readonly has: { readonly metrics: boolean; readonly history: boolean; readonly limits: boolean };
  /** Tasks that can be added with a form. */
  readonly tasks: readonly AddableTask[];
}

interface AddableTask {
  readonly name: string;
  /** Its payload is checked before a job is added. */
  readonly isChecked: boolean;
}
