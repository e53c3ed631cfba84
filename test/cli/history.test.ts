import { expect, test, vi } from "vitest";
import { runCommand } from "../support/command.ts";
import { freshDatabase } from "../support/database.ts";
import { makeProject } from "../support/project.ts";
import { until } from "../support/wait.ts";
import { startWorker } from "../worker/kit.ts";

// The test starts many processes, and the machine may be busy.
vi.setConfig({ testTimeout: 240_000 });

test("history, errors and show tell what became of jobs, for people and for programs", async () => {
  const db = await freshDatabase();
  const { folder: cwd } = await makeProject();
  const hathi = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await runCommand(args, { cwd, env: { DATABASE_URL: db.url } });
    return code === 0 ? stdout || stderr : `${code}: ${stderr}`;
  };
  const json = async (...args: string[]): Promise<unknown> => JSON.parse(await hathi(...args, "--json"));
  expect(await hathi("history")).toBe("Nothing is kept that matches.\n");
  expect(await hathi("errors")).toBe("No failure is kept that matches.\n");

  let runs = 0;
  const { runner, completed, pool } = await startWorker(
    db,
    {
      report: () => ({ rows: 7 }),
      plain: () => undefined,
      parent: (_payload, { addJob }) => void addJob("plain", {}, { runAt: new Date("2035-01-01T00:00:00Z") }),
      flaky: () => {
        if (++runs < 3) throw new TypeError("not\u001b[31m yet");
      },
    },
    {
      history: "full",
      redact: ["password"],
      taskOptions: { report: { keepResult: true }, flaky: { backoff: () => 0 } },
    },
  );
  const report = await runner.addJob("report", { password: "secret", month: 1 }, { jobKey: "k", queueName: "q" });
  const flaky = await runner.addJob("flaky", {});
  const plain = await runner.addJob("plain", {});
  await completed(5);

  // Every attempt of a job that failed, with its error, duration and worker.
  const attempt = {
    id: flaky.id,
    task_identifier: "flaky",
    worker_id: pool().id,
    run_ms: expect.any(Number),
    wait_ms: expect.any(Number),
  };
  expect(await json("show", flaky.id)).toMatchObject({
    state: "finished",
    outcome: "succeeded",
    history: [
      { ...attempt, attempt: 1, outcome: "failed", error_class: "TypeError", error: expect.stringContaining("not") },
      { ...attempt, attempt: 2, outcome: "failed", error_class: "TypeError" },
      { ...attempt, attempt: 3, outcome: "succeeded", error: null },
    ],
  });
  expect(await hathi("show", flaky.id)).toMatch(/\n\nAttempt 2 failed: TypeError\n {4}at .*history\.test\.ts:\d+:\d+/);
  const shown = await hathi("show", report.id);
  expect(shown).toMatch(/state: +finished \(succeeded\)/);
  expect(shown).toMatch(/result: +\{\n +"rows": 7\n +\}/);
  expect(shown).toMatch(/"password": "\[redacted\]"/);
  expect(await hathi("show", "999")).toMatch(
    /^1: There is no job 999: it was completed \(and history is off or has expired\)/,
  );

  const parent = await runner.addJob("parent", {});
  await until(async () => (await db.query("select from graphile_worker._hathi_job_links")).length > 0);
  const [, child = ""] = /^it added: +(\d+) plain \(scheduled\)$/m.exec(await hathi("show", parent.id))!;
  expect(await hathi("show", child)).toMatch(new RegExp(`^added by: +${parent.id} parent \\(succeeded\\)$`, "m"));

  const all = await hathi("history");
  expect(
    all
      .split("\n")
      .slice(1, -1)
      .map((line) => line.trim().split(/\s+/).slice(0, 3)),
  ).toEqual(
    expect.arrayContaining([
      [plain.id, "succeeded", "plain"],
      [flaky.id, "failed", "flaky"],
    ]),
  );
  expect(all).not.toContain("\u001b");
  const found = async (...flags: string[]): Promise<unknown> =>
    ((await json("history", ...flags)) as { entries: { id: string; attempt: number }[] }).entries.map(
      ({ id, attempt }) => [id, attempt],
    );
  expect(await found("--key", "k")).toEqual([[report.id, 1]]);
  expect(await found("--queue", "q", "--task", "report")).toEqual([[report.id, 1]]);
  expect(await found("--outcome", "failed", "--since", "1h")).toEqual([
    [flaky.id, 2],
    [flaky.id, 1],
  ]);
  expect(await hathi("history", "--limit", "2")).toContain("OUTCOME");

  const [group] = (await json("errors")) as { fingerprint: string }[];
  expect(group).toMatchObject({
    task_identifier: "flaky",
    error_class: "TypeError",
    count: 2,
    jobs: null,
    example_id: flaky.id,
  });
  expect(await json("errors", "--since", "1h")).toMatchObject([{ count: 2, jobs: 1 }]);
  expect(await found("--fingerprint", group!.fingerprint)).toEqual([
    [flaky.id, 2],
    [flaky.id, 1],
  ]);
  expect(await hathi("errors", "--task", "flaky")).toMatch(/GROUP +COUNT[\s\S]*TypeError/);
  expect(await hathi("history", "--outcome", "faild")).toMatch(
    /^1: 'faild' is not an outcome.*Did you mean 'failed'\?/,
  );
});

test("doctor names history that should be gone, and cleanup drops it", async () => {
  const db = await freshDatabase();
  const { folder: cwd } = await makeProject();
  const hathi = (...args: string[]): ReturnType<typeof runCommand> =>
    runCommand(args, { cwd, env: { DATABASE_URL: db.url } });
  const partitions = async (): Promise<number> => {
    const rows = await db.query(
      "select from pg_class where relname ~ '^_hathi_(history|job_links).*_[0-9]{8}$' and relkind = 'r'",
    );
    return rows.length;
  };
  await db.query("select graphile_worker._hathi_tend_history_on('{1}', '2020-01-01') from generate_series(1, 7)");
  expect(await partitions()).toBe(9);
  await db.query("insert into graphile_worker._hathi_job_progress values (77, 1, null, null, 1, now())");
  expect((await hathi("doctor")).stdout).toMatch(
    /9 partitions of history have expired and are still there: a worker with the option 'history' drops them, or 'hathi cleanup drop-expired-history'\./,
  );
  expect(await hathi("cleanup", "drop-expired-history")).toMatchObject({ code: 0, stdout: "Cleaned up.\n" });
  expect(await partitions()).toBe(0);
  expect(await db.query("select from graphile_worker._hathi_job_progress")).toEqual([]);
  expect((await hathi("doctor")).stdout).toContain("No history is kept.");
});
