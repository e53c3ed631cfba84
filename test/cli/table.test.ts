import { stripVTControlCharacters } from "node:util";
import pc from "picocolors";
import { expect, test } from "vitest";
import { fitColumns } from "../../src/cli/fit-columns.ts";
import { formatJobs } from "../../src/cli/job-table.ts";
import { formatTable } from "../../src/cli/table.ts";
import type { Terminal } from "../../src/cli/terminal.ts";
import type { ListedJob } from "../../src/index.ts";

const column = (width: number, minWidth?: number, drop?: number, isEmpty = false) => ({
  width,
  minWidth,
  drop,
  isEmpty,
});

test("columns keep their width where there is room, and shrink from the widest where there is not", () => {
  expect(fitColumns([column(5), column(20, 8), column(30, 8)], 2, 100)).toEqual([5, 20, 30]);
  expect(fitColumns([column(5), column(20, 8), column(30, 8)], 2, 49)).toEqual([5, 20, 20]);
  expect(fitColumns([column(5), column(20, 8), column(30, 8)], 2, 31)).toEqual([5, 11, 11]);
});

test("empty columns go first, then the least important, and those without a rank stay", () => {
  const columns = [column(5), column(10, undefined, 1), column(10, undefined, 2, true), column(20, 10, 3)];
  expect(fitColumns(columns, 2, 60)).toEqual([5, 10, 10, 20]);
  expect(fitColumns(columns, 2, 40)).toEqual([5, 10, null, 20]);
  expect(fitColumns(columns, 2, 20)).toEqual([5, 10, null, null]);
  expect(fitColumns(columns, 2, 8)).toEqual([5, null, null, null]);
  expect(fitColumns(columns, 2, 3)).toEqual([5, null, null, null]);
});

const longJob: ListedJob = {
  id: "12345678901",
  state: "dead",
  task_identifier: "mails/send-the-monthly-newsletter-to-all",
  queue_name: "newsletters-of-the-month",
  priority: -10,
  // Days and hours, at whatever time of the day this runs.
  run_at: new Date(Date.now() + (10_000 * 24 + 12.5) * 3_600_000),
  attempts: 25,
  max_attempts: 25,
  last_error: "connect ECONNREFUSED 127.0.0.1:25 after a while, and more words than fit on a line of a terminal",
  created_at: new Date(),
  updated_at: new Date(),
  key: "newsletter:2026-11:all-customers",
  locked_at: null,
  locked_by: null,
  revision: 0,
  flags: null,
  pause: null,
  cancelled_at: null,
  progress: null,
  snoozes: 0,
  overrunning_since: null,
};

test.each([80, 120])("a table of jobs with long values fits a terminal of %d columns", (width) => {
  const terminal = { colours: pc.createColors(true), width } as Terminal;
  const lines = formatJobs([longJob, { ...longJob, id: "1", state: "scheduled", last_error: null }], terminal).split(
    "\n",
  );
  for (const line of lines) expect(stripVTControlCharacters(line).length).toBeLessThanOrEqual(width);
  for (const title of ["ID", "STATE", "TASK", "TRIES", "LAST ERROR"]) expect(lines[0]).toContain(title);
  expect(lines[1]).toContain("12345678901");
  expect(stripVTControlCharacters(lines[1]!)).toMatch(/mails\/send.*…/);
  expect(lines[0]!.includes("RUN AT")).toBe(width === 120);
});

test("where a program reads, no column is left out, and a dead job has no time to run at", () => {
  const terminal = { colours: pc.createColors(false), width: Number.POSITIVE_INFINITY } as Terminal;
  const [titles, job] = formatJobs([longJob], terminal).split("\n");
  expect(titles).toMatch(/ID +STATE +TASK +QUEUE +PRIO +TRIES +RUN AT +KEY +LAST ERROR/);
  expect(job).not.toMatch(/\bin \d/);
  expect(formatTable([{ a: "x\ny" }], [{ title: "A", text: (row) => row.a }], terminal.width)).toBe("A\nx y");
});
