import { expect, onTestFinished, test } from "vitest";
import { freshDatabase } from "../support/database.ts";
import { recorder, startRunner } from "./kit.ts";

test("a worker that a signal ends says so, when all is done", async () => {
  const db = await freshDatabase();
  // Somebody else handles the signal too, so the process lives on.
  const mine = (): void => undefined;
  process.on("SIGUSR2", mine);
  onTestFinished(() => void process.off("SIGUSR2", mine));
  const seen = recorder("workerStart", "workerShutdown");
  const runner = await startRunner(db, { t: () => undefined }, { noHandleSignals: false, hooks: seen.hooks });
  await seen.first("workerStart");
  process.kill(process.pid, "SIGUSR2");
  await runner.promise;
  expect(seen.of("workerShutdown")).toMatchObject([{ reason: "signal", error: null }]);
});
