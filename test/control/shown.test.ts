import { expect, test, vi } from "vitest";
import { SnoozeError, UnrecoverableError } from "../../src/index.ts";
import { runCommand } from "../support/command.ts";
import { freshDatabase } from "../support/database.ts";
import { makeProject } from "../support/project.ts";
import { until } from "../support/wait.ts";
import { startWorker } from "../worker/kit.ts";
import { stubbornTask, utilsOf } from "./kit.ts";

vi.setConfig({ testTimeout: 120_000 });

test("the program shows what was done to jobs, in words and as JSON: cancelled, snoozed, overrunning, given up", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const { folder } = await makeProject({});
  const ask = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await runCommand(args, { cwd: folder, env: { DATABASE_URL: db.url } });
    expect(code, stderr).toBe(0);
    return stdout;
  };
  const deaf = stubbornTask();
  const tasks = {
    deaf: deaf.task,
    slow: deaf.task,
    sleepy: () => Promise.reject(new SnoozeError("1h")),
    hopeless: () => Promise.reject(new UnrecoverableError("no such customer")),
  };
  const slow = { timeout: 30, abortGrace: 1, backoff: { type: "fixed", delay: "1h" } } as const;
  const worker = await startWorker(db, tasks, { concurrency: 4, taskOptions: { slow } });
  const added = await utils.addJobs(
    ["deaf", "slow", "sleepy", "hopeless"].map((identifier) => ({ identifier, payload: {} })),
  );
  const [cancelling, overrunning, snoozed, dead] = added.map(({ id }) => id) as [string, string, string, string];
  await worker.completed(3);
  await utils.cancelJobs([cancelling], { reason: "customer left", by: "ann" });
  await until(async () => (await utils.getJobStats()).controlled.overrunning === 1);

  const list = (await ask("list")).split("\n");
  const lineOf = (id: string): string => list.find((line) => line.trim().startsWith(`${id} `))!;
  expect(lineOf(cancelling)).toMatch(/ cancelling +deaf /);
  expect(lineOf(overrunning)).toMatch(/ scheduled, overrunning +slow /);
  expect(lineOf(dead)).toMatch(/ dead +hopeless .*no such customer/);
  const { jobs } = JSON.parse(await ask("list", "--json"));
  expect(Object.fromEntries(jobs.map((job: { id: string }) => [job.id, job]))).toMatchObject({
    [cancelling]: { cancelled_at: expect.any(String), snoozes: 0, overrunning_since: null },
    [overrunning]: { cancelled_at: null, snoozes: 0, overrunning_since: expect.any(String) },
    [snoozed]: { cancelled_at: null, snoozes: 1, overrunning_since: null, attempts: 0 },
    [dead]: { state: "dead" },
  });

  expect(await ask("show", overrunning)).toMatch(/^overruns: +since \S.* ago/m);
  expect(JSON.parse(await ask("show", snoozed, "--json"))).toMatchObject({ snoozes: 1 });
  expect(await ask("stats")).toContain("Jobs: 1 stopping, 1 snoozed, 1 overrunning their timeout.");
  const controlled = { cancelling: 1, snoozed: 1, overrunning: 1 };
  expect(JSON.parse(await ask("stats", "--json"))).toMatchObject({ controlled });
  expect(JSON.parse(await ask("workers", "--json"))).toMatchObject([{ id: worker.pool().id, overruns: 1 }]);
  expect(await ask("why", cancelling)).toMatch(
    /cancelled while it was running, at .* by ann\. Reason: customer left\./,
  );
});
