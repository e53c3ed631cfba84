import type { ClientBase } from "pg";
import { ask } from "./statement.ts";
import { type HolderRow, listBlockers, listLockHolders } from "./statements/migration.ts";

/** A server process that keeps others waiting. */
export interface LockHolder {
  readonly pid: number;
  /** Who that is and what it does, on one line. */
  readonly description: string;
}

/** Who has the longest open transactions that hold locks on tables of the schema; at most three. */
export async function findLockHolders(client: ClientBase, schema: string): Promise<LockHolder[]> {
  return (await ask(client, listLockHolders, { schema })).map(describe);
}

/** Who keeps this server process waiting now; at most three. */
export async function findBlockers(client: ClientBase, pid: number): Promise<LockHolder[]> {
  return (await ask(client, listBlockers, { pid })).map(describe);
}

function describe({ pid, application, role, state, seconds, query }: HolderRow): LockHolder {
  const facts = [
    application && `application '${application}'`,
    role && `role '${role}'`,
    state && (seconds === null ? state : `${state}, in a transaction for ${seconds} s`),
    query && `last query: ${shorten(query)}`,
  ].filter(Boolean);
  return { pid, description: printable(`process ${pid} (${facts.join("; ")})`) };
}

function shorten(query: string): string {
  const line = query.trim();
  return line.length > 80 ? `${line.slice(0, 79)}…` : line;
}

/** On one line and without terminal escapes, whatever the application's names contain. */
function printable(text: string): string {
  return text.replace(/[\s\p{Cc}]+/gu, " ");
}

/** Several holders in one phrase. */
export function listHolders(holders: readonly LockHolder[]): string {
  return holders.map(({ description }) => description).join(", ");
}
