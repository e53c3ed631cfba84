import { expect, test, vi } from "vitest";
import { freshDatabase } from "../support/database.ts";
import { runProgram, startProgram } from "../support/program.ts";
import { makeProject } from "../support/project.ts";
import { until } from "../support/wait.ts";
import { sample } from "./kit.ts";

// Each test starts processes, and the machine may be busy.
vi.setConfig({ testTimeout: 120_000 });

test("--metrics-port serves metrics and health until the worker ends", async () => {
  const db = await freshDatabase();
  const { folder: cwd } = await makeProject({ "tasks/hello.mjs": "export default () => undefined;" });
  await db.query("select graphile_worker.add_job('hello')");
  const worker = startProgram(["--metrics-port", "0", "-c", db.url], { cwd });
  const [, url] = await worker.says(/Serving \/metrics, \/livez and \/readyz at (http:\/\/127\.0\.0\.1:\d+)/);
  await until(async () => (await fetch(`${url}/readyz`)).status === 200);
  expect((await fetch(`${url}/livez`)).status).toBe(200);
  const finished = { task: "hello", outcome: "succeeded" };
  await until(
    async () => sample(await (await fetch(`${url}/metrics`)).text(), "hathi_jobs_finished_total", finished) === 1,
  );
  worker.kill("SIGTERM");
  expect(await worker.ended).toMatchObject({ code: 0 });
});

test("flags for metrics that cannot work are refused", async () => {
  const { folder: cwd } = await makeProject({});
  const url = "postgres://127.0.0.1:1/none";
  const complaint = async (...args: string[]): Promise<string> => {
    const { code, stderr } = await runProgram([...args, "-c", url], { cwd });
    expect(code).not.toBe(0);
    return stderr;
  };
  expect(await complaint("--metrics-host", "0.0.0.0")).toContain("--metrics-host needs --metrics-port.");
  expect(await complaint("--once", "--metrics-port", "0")).toContain(
    "--metrics-port needs a worker that keeps running.",
  );
  expect(await complaint("--metrics-port", "70000")).toContain("metrics-port");
});
