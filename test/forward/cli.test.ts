import { readFile } from "node:fs/promises";
import { expect, test, vi } from "vitest";
import { builtLibrary } from "../support/built-library.ts";
import { freshDatabase } from "../support/database.ts";
import { runProgram, startProgram } from "../support/program.ts";
import { makeProject } from "../support/project.ts";
import { until } from "../support/wait.ts";

// The program is started as a process, and the machine may be busy.
vi.setConfig({ testTimeout: 60_000 });

/** A config file whose target appends the ids of what it gets to a file. */
const config = `
import { appendFileSync } from "node:fs";
import { forward } from ${JSON.stringify(builtLibrary().replace(/index\.js$/, "forward/index.js"))};
const to = async (batch) => batch.map(({ id, body }) => {
  appendFileSync(new URL("sent.txt", import.meta.url), id + " " + body + "\\n");
  return "acked";
});
export default { worker: { forward: [forward({ tasks: ["mail/*"], to })] } };
`;
const hello = "export default () => undefined;";

test.each([
  { args: ["forward"], what: "hathi forward sends jobs on and runs no tasks", left: ["hello"] },
  { args: [], what: "a worker does what 'forward' of its config file says, beside its tasks", left: [] },
])("$what", async ({ args, left }) => {
  const db = await freshDatabase();
  const { folder: cwd, path } = await makeProject({ "graphile.config.mjs": config, "tasks/hello.mjs": hello });
  await db.query(`select graphile_worker.add_job('hello'), graphile_worker.add_job('mail/welcome', '{"to":"Ada"}')`);
  const program = startProgram([...args, "-c", db.url], { cwd });
  await until(async () => (await db.jobs()).length === left.length, { withinMs: 40_000 });
  program.kill("SIGTERM");
  await program.ended;
  expect(await readFile(path("sent.txt"), "utf8")).toBe('hathi-graphile_worker-2 {"to":"Ada"}\n');
  const jobs = await db.jobs();
  expect(jobs.map(({ task_identifier, attempts }) => [task_identifier, attempts])).toEqual(
    left.map((name) => [name, 0]),
  );
});

test("hathi forward without a forwarder says what to write where", async () => {
  const db = await freshDatabase();
  const { folder: cwd } = await makeProject();
  const { code, stderr } = await runProgram(["forward", "-c", db.url], { cwd });
  expect(code).not.toBe(0);
  expect(stderr).toContain("Nothing to forward: put 'forward: [forward({ tasks, to })]' into 'worker'");
});
