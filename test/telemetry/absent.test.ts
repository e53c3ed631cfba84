import { expect, test, vi } from "vitest";
import { addJobAdhoc } from "../../src/runner/add-job-adhoc.ts";
import { runOnce } from "../../src/runner/run.ts";
import { freshDatabase } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { setUpTracing } from "./kit.ts";

vi.mock("node:module", async (original) => {
  const createRequire = () => (name: string) => {
    throw Object.assign(new Error(`Cannot find module '${name}'`), { code: "MODULE_NOT_FOUND" });
  };
  const real = await original<object>();
  return { ...real, default: { ...real, createRequire }, createRequire };
});

test("where the OpenTelemetry API is not installed, jobs are added and run as ever", async () => {
  const db = await freshDatabase();
  const { spans } = setUpTracing();
  const job = await addJobAdhoc({ connectionString: db.url }, "t", { n: 1 });
  expect((await db.job(job.id))?.payload).toEqual({ n: 1 });
  const ran: unknown[] = [];
  const options = { connectionString: db.url, logger: rememberingLogger().logger, noHandleSignals: true };
  await runOnce(options, { t: (payload) => void ran.push(payload) });
  expect([ran, spans()]).toEqual([[{ n: 1 }], []]);
});
