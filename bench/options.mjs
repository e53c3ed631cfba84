import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";

const help = `npm run bench -- [scenario …] [options]

Scenarios: s1 … s19 (default: all)
  --only a,b         systems or families to run: ours, graphile-worker, graphile-worker-tuned, pg-boss, bullmq, …
  --case a,b         only cases whose title is or contains one of these; nothing is written
  --keep             with --case: writes those cases, and keeps the others as they were measured before
  --quick            a tenth of the jobs and one round: for trying, not for quoting
  --rounds n         rounds per case (default 3; 1 with --quick)
  --concurrency n    concurrency of ours and of graphile-worker's default (default 10)
  --limit seconds    longest time one drain may take before its rate is taken as it is (default 20; 5 with --quick)
  --data-dir path    folder of the PostgreSQL server (default: in the system's temporary folder)
  --database-url url measure on this server instead of starting one
  --redis path       redis-server to start (default: the one on the PATH)
  --no-build         use dist as it is
  --no-write         leave bench/RESULTS.md and bench/results alone (as --quick does)`;

/** What one run was asked to do. */
export function parseOptions(args) {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      only: { type: "string" },
      case: { type: "string" },
      keep: { type: "boolean", default: false },
      quick: { type: "boolean", default: false },
      rounds: { type: "string" },
      concurrency: { type: "string", default: "10" },
      limit: { type: "string" },
      "data-dir": { type: "string", default: join(tmpdir(), "hathi-bench") },
      "database-url": { type: "string" },
      redis: { type: "string", default: process.env.REDIS_SERVER ?? "redis-server" },
      "no-build": { type: "boolean", default: false },
      "no-write": { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) {
    console.log(help);
    process.exit(0);
  }
  const { quick } = values;
  return Object.freeze({
    quick,
    scenarios: positionals.map((name) => name.toLowerCase()),
    only: values.only?.split(",").map((name) => name.trim()),
    cases: values.case?.split(",").map((part) => part.trim()),
    rounds: wholeNumber("--rounds", values.rounds ?? (quick ? "1" : "3")),
    concurrency: wholeNumber("--concurrency", values.concurrency),
    limitMs: wholeNumber("--limit", values.limit ?? (quick ? "5" : "20")) * 1000,
    dataDir: values["data-dir"],
    databaseUrl: values["database-url"],
    redis: values.redis,
    build: !values["no-build"],
    write: !values["no-write"] && !quick && (values.case === undefined || values.keep),
    keep: values.keep,
    /** Number of jobs for this run, given the number of the full one. */
    scale: (count) => (quick ? Math.max(1, Math.round(count / 10)) : count),
  });
}

function wholeNumber(flag, text) {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1)
    throw new Error(`${flag} must be a whole number from 1 up, got '${text}'.`);
  return value;
}
