import type { Database } from "./database.ts";
import { readSettings } from "./statements/diagnose.ts";

/** A setting of the role, the database or the server that a worker cannot work well with. */
export interface OddSetting {
  readonly name: string;
  readonly value: string;
  /** `problem`: something does not work at all. */
  readonly status: "warning" | "problem";
  /** What it does to the queue, and the way out. */
  readonly message: string;
}

interface Rule {
  readonly status: OddSetting["status"];
  readonly isOdd: (value: string) => boolean;
  readonly effect: string;
}

/** Milliseconds of a setting as PostgreSQL shows it, such as `50ms` or `2min`; no limit is infinite. */
function toMs(value: string): number {
  const [, count, unit] = /^(\d+)(us|ms|s|min|h|d)?$/.exec(value) ?? [];
  const factor = { us: 0.001, ms: 1, s: 1_000, min: 60_000, h: 3_600_000, d: 86_400_000 }[unit ?? "ms"] ?? 1;
  return count === undefined || count === "0" ? Infinity : Number(count) * factor;
}

const shorterThan = (limitMs: number) => (value: string) => toMs(value) < limitMs;

const rules: Readonly<Record<string, Rule>> = {
  default_transaction_read_only: {
    status: "problem",
    isOdd: (value) => value === "on",
    effect: "nothing can be written, so no job can be added, claimed or settled",
  },
  array_nulls: {
    status: "problem",
    isOdd: (value) => value === "off",
    effect: "arrays with nulls are misread, so adding jobs in batches and failing jobs may be refused",
  },
  DateStyle: {
    status: "problem",
    isOdd: (value) => !value.startsWith("ISO"),
    effect: "the driver 'pg' reads only ISO dates, so the times of jobs that it returns are wrong",
  },
  default_transaction_isolation: {
    status: "warning",
    isOdd: (value) => value !== "read committed",
    effect:
      "statements that meet others are refused and repeated, and adding jobs with keys may fail; 'read committed' is meant",
  },
  statement_timeout: {
    status: "warning",
    isOdd: shorterThan(5_000),
    effect: "migrations, sweeps and large batches may take longer than that and are cancelled",
  },
  transaction_timeout: {
    status: "warning",
    isOdd: shorterThan(5_000),
    effect: "migrations, sweeps and large batches may take longer than that and lose their connection",
  },
  lock_timeout: {
    status: "warning",
    isOdd: shorterThan(1_000),
    effect: "adding a job with a key, and settling, may have to wait longer than that for a row, and fail",
  },
  idle_session_timeout: {
    status: "warning",
    isOdd: shorterThan(90_000),
    effect: "the connections that listen for jobs and send heartbeats are cut while they wait",
  },
};

/** Settings of this connection that harm a queue. Those that are not listed here make no difference. */
export async function findOddSettings(database: Pick<Database, "run">): Promise<OddSetting[]> {
  const rows = await database.run(readSettings, { names: Object.keys(rules) });
  return rows.flatMap(({ name, value, role }) => {
    const rule = rules[name];
    // A server that does not know the setting has no value for it.
    if (!rule || value === null || !rule.isOdd(value)) return [];
    const message =
      `${name} is '${value}' for the role '${role}': ${rule.effect}. ` +
      `Change it with: alter role ${role} set ${name} = …, or in the connection's options.`;
    return [{ name, value, status: rule.status, message }];
  });
}
