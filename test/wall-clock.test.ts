import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const src = fileURLToPath(new URL("../src", import.meta.url));

/** Where the wall clock may be read (a file, or a folder with its slash), and why that decides nothing. With `useNodeTime` the user has asked for it. */
const allowed: Readonly<Record<string, string>> = {
  "util/timers.ts": "names it",
  "admin/doctor.ts": "measures how wrong it is",
  "admin/explain-job.ts": "a job that does not exist has no time of the server",
  "cli/commands/cron.ts": "shows upcoming runs",
  "cli/commands/pause.ts": "refuses a time in the past that a person typed",
  "cli/flags.ts": "reads a time that a person typed",
  "cli/history-table.ts": "shows how long ago",
  "cli/job-table.ts": "shows how long ago",
  "cli/refresh.ts": "shows the time",
  "control/pause-admin.ts": "refuses a time in the past",
  "cron/clock.ts": "for schedulers without a database; a worker's goes by the server's clock",
  "cron/upcoming.ts": "a default for the caller's own time",
  "dashboard/app/core/clock.ts": "shows how long ago",
  "dashboard/app/core/use-live.ts": "shows how old the data is",
  "dashboard/server/actions/cron-and-workers.ts": "the time of a run that a person starts",
  "dashboard/server/actions/pauses.ts": "refuses a time in the past",
  "dashboard/server/pages/": "the time of a page, and spans that a person reads",
  "job-errors.ts": "how far away a time is that a task names",
  "log-factory.ts": "the time of a log line",
  "metrics/pool-meter.ts": "a measured wait, corrected by the server's clock",
  "runner/hooks/pool-interceptors.ts": "a duration for hooks to read",
  "testing/clock.ts": "the clock that a test moves",
  "worker/claim/read-claim.ts": "what a task reads as its job's locked_at",
  "worker/run/decide.ts": "a time that a task names; the server compares it with its own clock",
};

test("the wall clock is read only where nothing depends on it, or where the user asked for it", () => {
  const readers = new Set<string>();
  for (const file of readdirSync(src, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"))) {
    for (const line of readFileSync(join(src, file), "utf8").split("\n")) {
      if (/\bDate\.now\b|\bnew Date\(\)|\bwallMs\b|\bDate\(\)/.test(line) && !/useNodeTime \?/i.test(line))
        readers.add(Object.keys(allowed).find((folder) => folder.endsWith("/") && file.startsWith(folder)) ?? file);
    }
  }
  expect([...readers].sort()).toEqual(Object.keys(allowed).sort());
});
