import type { ClientBase } from "pg";

/** A server process that keeps others waiting. */
export interface LockHolder {
  readonly pid: number;
  /** Who that is and what it does, on one line. */
  readonly description: string;
}

interface HolderRow {
  readonly pid: number;
  readonly application: string | null;
  readonly role: string | null;
  readonly state: string | null;
  readonly seconds: number | null;
  readonly query: string | null;
}

/** Who has the longest open transactions that hold locks on tables of the schema; at most three. */
export async function findLockHolders(client: ClientBase, schema: string): Promise<LockHolder[]> {
  const { rows } = await client.query<HolderRow>(
    `${describeActivity} where activity.pid in (
      select lock.pid from pg_locks as lock
      join pg_class as class on class.oid = lock.relation
      join pg_namespace as namespace on namespace.oid = class.relnamespace
      where lock.granted and namespace.nspname = $1::text and lock.pid <> pg_backend_pid()
        and lock.database = (select oid from pg_database where datname = current_database())
    ) order by activity.xact_start limit 3`,
    [schema],
  );
  return rows.map(describe);
}

/** Who keeps this server process waiting now; at most three. */
export async function findBlockers(client: ClientBase, pid: number): Promise<LockHolder[]> {
  const { rows } = await client.query<HolderRow>(
    `${describeActivity} where activity.pid = any (pg_blocking_pids($1)) order by activity.xact_start limit 3`,
    [pid],
  );
  return rows.map(describe);
}

// A role without privileges sees the process and the role of others, and null for the rest.
const describeActivity = `
select activity.pid, activity.application_name as application, activity.usename as role, activity.state,
  round(date_part('epoch', clock_timestamp() - activity.xact_start))::integer as seconds, activity.query
from pg_stat_activity as activity`;

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
