import type { ActionBodies } from "../../contract.ts";
import type { Caller } from "../authenticate.ts";
import type { DashboardContext } from "../context.ts";
import type { AuditTarget } from "../pages/audit.ts";

export type ActionName = keyof ActionBodies;

/** What an action has done. */
export interface Done {
  /** Jobs, or 1 for anything else that took effect. */
  readonly changed: number;
  readonly ids?: readonly string[];
  /** One sentence. */
  readonly message: string;
}

/** An action that was asked for, checked and not begun. */
interface Prepared {
  /** For the audit, which every user may read: no payloads. */
  readonly target: AuditTarget;
  run(): Promise<Done>;
}

/** Checks what was asked for. Throws a refusal before anything is done. */
export type Action = (context: DashboardContext, body: unknown, caller: Caller) => Prepared;

export function say(count: number, noun: string): string {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}
