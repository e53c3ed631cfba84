import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { linkPackage } from "../docs/packed.ts";
import { freshDatabase } from "../support/database.ts";
import { makeProject } from "../support/project.ts";

const jest = fileURLToPath(new URL("node_modules/jest/bin/jest.js", import.meta.url));

const suite = `
import { jest } from "@jest/globals";
import { Logger, runTaskListOnce } from "hathi";
import pg from "pg";

test("runTaskListOnce ends although no timer does", async () => {
  const client = new pg.Client({ connectionString: process.env.DATABASE_URL });
  await client.connect();
  jest.useFakeTimers();
  const faked = Date.now();
  const payloads = [];
  const logger = new Logger(() => () => undefined);
  const ok = (payload) => void payloads.push(payload);
  const bad = () => { throw new Error("no"); };
  await runTaskListOnce({ logger, noHandleSignals: true }, { ok, bad }, client);
  expect(payloads).toEqual([{ n: 1 }, { n: 2 }]);
  expect(Date.now()).toBe(faked);
  jest.useRealTimers();
  await client.end();
});
`;

test("a test with Jest's fake timers runs its jobs to the end", { timeout: 180_000 }, async () => {
  const db = await freshDatabase();
  await db.query("select graphile_worker.add_job('ok', json_build_object('n', n)) from generate_series(1, 2) n");
  await db.query("select graphile_worker.add_job('bad', queue_name => 'q')");
  const project = await makeProject({
    "package.json": '{ "type": "module", "jest": { "testEnvironment": "node", "transform": {} } }',
    "fake-timers.test.js": suite,
  });
  await linkPackage(project.folder, ["pg", "graphile-config", "@graphile"]);
  const { VITEST: _vitest, NODE_ENV: _nodeEnv, ...env } = process.env;
  const run = promisify(execFile)(
    process.execPath,
    ["--experimental-vm-modules", jest, "--ci", "--runInBand", "--testTimeout=60000", "--rootDir", project.folder],
    { cwd: project.folder, env: { ...env, DATABASE_URL: db.url }, timeout: 170_000 },
  );
  const { stderr } = await run.catch((error: { stderr: string; stdout: string }) => {
    throw new Error(`${error.stdout}\n${error.stderr}`);
  });
  expect(stderr).toContain("1 passed");
  expect(await db.jobs()).toMatchObject([{ task_identifier: "bad", attempts: 1, last_error: "no", locked_at: null }]);
});
