import { expect, test } from "vitest";
import { makeWorkerUtils } from "../../src/index.ts";
import { rememberingLogger } from "../support/log.ts";
import { cronBench } from "./scheduler-kit.ts";

test("runs of a paused entry count as done and add no job; others go on, and so does it once resumed", async () => {
  const bench = await cronBench("2026-01-01T00:00:30Z");
  const utils = await makeWorkerUtils({ pgPool: bench.db.pool, logger: rememberingLogger().logger });
  await utils.pause({ cron: "a" }, { reason: "too much", by: "ann" });
  bench.start(["* * * * * task ?id=a\n* * * * * task ?id=b"]);
  await bench.clock.advanceTo("2026-01-01T00:02:30Z");
  expect(await bench.runs()).toEqual(["2026-01-01T00:01:00", "2026-01-01T00:02:00"]);
  expect(await bench.lastExecution("a")).toBe("2026-01-01T00:02:00.000Z");

  expect(await utils.listPauses()).toMatchObject([{ kind: "cron", name: "a", reason: "too much", pausedBy: "ann" }]);
  expect(await utils.resume({ cron: "a" })).toBe(true);
  await bench.clock.advanceTo("2026-01-01T00:03:30Z");
  expect(await bench.runs()).toHaveLength(4);
});

test("the pause of an entry keeps no job of its task from starting", async () => {
  const bench = await cronBench("2026-01-01T00:00:30Z");
  const utils = await makeWorkerUtils({ pgPool: bench.db.pool, logger: rememberingLogger().logger });
  await utils.pause({ cron: "task" });
  const job = await utils.addJob("task", {});
  expect((await utils.listJobs()).jobs).toMatchObject([{ id: job.id, pause: null }]);
  expect((await utils.explainJob(job.id)).reasons.map(({ kind }) => kind)).not.toContain("paused");
});
