import { expect, onTestFinished, test } from "vitest";
import { makeWorkerUtils, runOnce } from "../../src/index.ts";
import { rememberingLogger } from "../support/log.ts";
import { startPrivateServer } from "../support/private-server.ts";
import { until } from "../support/wait.ts";

test("a standby answers whoever only reads, and says to whoever adds a job that it is read-only", {
  timeout: 120_000,
}, async () => {
  const server = await startPrivateServer();
  onTestFinished(() => server.remove());
  const { logger } = rememberingLogger();
  const primary = await makeWorkerUtils({ connectionString: server.url, logger });
  await primary.addJob("mail", { n: 1 }, { queueName: "one" });
  await primary.addJob("broken", {}, { maxAttempts: 1 });
  const taskList = {
    mail: () => undefined,
    broken: () => {
      throw new Error("no paper");
    },
  };
  await runOnce({ connectionString: server.url, logger, taskList, history: "full" });
  await primary.addJob("mail", { n: 2 }, { runAt: new Date(Date.now() + 86_400_000), jobKey: "later" });
  await primary.pause({ task: "mail" });
  await primary.release();
  const standby = await server.makeStandby();

  const utils = await makeWorkerUtils({ connectionString: standby.url, logger }, { migrate: false });
  onTestFinished(() => utils.release());
  await until(async () => (await utils.countJobs()) === 2);
  expect((await utils.listJobs()).jobs.map(({ id }) => id).sort()).toEqual(["2", "3"]);
  expect(await utils.getJob("3")).toMatchObject({ state: "scheduled", key: "later" });
  expect((await utils.explainJob("2")).reasons).not.toEqual([]);
  expect(await utils.listErrors()).toMatchObject([{ example_error: "no paper" }]);
  expect(await utils.listPauses()).toHaveLength(1);
  await Promise.all([
    utils.getJobStats(),
    utils.getJobTimes(),
    utils.getJobTrends(),
    utils.getJobFigures(),
    utils.listQueues(),
    utils.listWorkers(),
    utils.listCrontabs(),
    utils.listHistory(),
    utils.listActions(),
    utils.listLimits(),
    utils.examineHealth(),
  ]);

  await expect(utils.addJob("mail", {})).rejects.toThrow("read-only transaction");
});
