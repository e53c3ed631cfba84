import { expect, test } from "vitest";
import { freshDatabase } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { startWorker } from "../worker/kit.ts";
import { addJob, quickly, registered } from "./kit.ts";

test("a pool that dies with jobs locked stays registered, so that others recover them and count the crash", async () => {
  const database = await freshDatabase();
  const patient = { ...quickly, sweepInterval: 60_000, sweepThreshold: 120_000, crashGrace: 60_000 };
  const dying = await startWorker(database, { task: () => undefined }, { recovery: patient });
  await dying.nth("worker:getJob:empty");
  const [former] = await registered(database);
  await database.query("alter function graphile_worker._hathi_complete_jobs rename to gone");
  const id = await addJob(database, "task");
  await expect(dying.runner.promise).rejects.toThrow("_hathi_complete_jobs");

  expect(await database.job(id)).toMatchObject({ locked_by: former });
  expect(await registered(database)).toEqual([former]);
  await database.query("alter function graphile_worker.gone rename to _hathi_complete_jobs");
  const heir = await startWorker(database, { task: () => undefined }, { recovery: quickly });
  await until(async () => (await database.job(id)) === undefined, { what: "the job is done elsewhere" });
  expect(heir.lines.some(({ message }) => message.includes(former!))).toBe(true);
}, 120_000);
