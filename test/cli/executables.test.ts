import { expect, test, vi } from "vitest";
import { freshDatabase } from "../support/database.ts";
import { runProgram } from "../support/program.ts";
import { makeProject } from "../support/project.ts";

const sh = `#!/bin/sh
echo "format=$GRAPHILE_WORKER_PAYLOAD_FORMAT task=$GRAPHILE_WORKER_TASK_IDENTIFIER id=$GRAPHILE_WORKER_JOB_ID key=\${GRAPHILE_WORKER_JOB_KEY-unset}"
echo "attempt $GRAPHILE_WORKER_JOB_ATTEMPTS of $GRAPHILE_WORKER_JOB_MAX_ATTEMPTS, priority $GRAPHILE_WORKER_JOB_PRIORITY, at $GRAPHILE_WORKER_JOB_RUN_AT, in $(pwd)"
echo "stdin=$(cat)"
`;
const node = `#!/usr/bin/env node
let text = "";
process.stdin.on("data", (chunk) => (text += chunk)).on("end", () => {
  const { payload } = JSON.parse(text);
  console.log("sum", payload.numbers.reduce((sum, number) => sum + number));
  console.error("to stderr");
});
`;

// Each test starts several processes, and the machine may be busy.
vi.setConfig({ testTimeout: 120_000 });

test("an executable in any language gets the payload on stdin and the job in its environment", async () => {
  const db = await freshDatabase();
  const { folder: cwd, write } = await makeProject();
  await write("tasks/shell/tell.sh", sh, { executable: true });
  await write("tasks/add_up", node, { executable: true });
  await db.query(`select graphile_worker.add_job('shell/tell', '{"a":1}', job_key => 'k', priority => 3, max_attempts => 4,
    run_at => '2020-01-02T03:04:05Z')`);
  await db.query(`select graphile_worker.add_job('add_up', '{"numbers":[1,2,39]}')`);
  const { code, stdout, stderr } = await runProgram(["--once", "-c", db.url], { cwd });
  expect(code).toBe(0);
  expect(stdout).toContain("INFO  shell/tell{1} format=json task=shell/tell id=1 key=k");
  expect(stdout).toContain(`attempt 1 of 4, priority 3, at 2020-01-02T03:04:05.000Z, in ${cwd}`);
  expect(stdout).toContain('stdin={"payload":{"a":1}}');
  expect(stdout).toContain("INFO  add_up{2} sum 42");
  expect(stderr).toContain("ERROR add_up{2} to stderr");
  expect(await db.jobs()).toEqual([]);
});

test("a program that fails, dies, or cannot be started makes its job fail with the reason", async () => {
  const db = await freshDatabase();
  const { folder: cwd, write } = await makeProject();
  await write("tasks/fails", "#!/bin/sh\necho 'no more paper' >&2\nexit 3\n", { executable: true });
  await write("tasks/dies", "#!/bin/sh\nkill -9 $$\n", { executable: true });
  await write("tasks/lost", "#!/no/such/interpreter\n", { executable: true });
  await db.query("select graphile_worker.add_job(name) from unnest(array['fails', 'dies', 'lost']) as name");
  const { code } = await runProgram(["--once", "-c", db.url], { cwd });
  expect(code).toBe(0);
  const errors = (await db.jobs()).map((job) => job.last_error?.replaceAll(cwd, "<cwd>"));
  expect(errors).toEqual([
    "Executable '<cwd>/tasks/fails' failed with exit code 3: no more paper",
    "Executable '<cwd>/tasks/dies' was ended by SIGKILL",
    "Could not start '<cwd>/tasks/lost': the file, or the interpreter its first line names, was not found.",
  ]);
});

test("a module goes before an executable of the same name, and a file that may not be executed is no task", async () => {
  const db = await freshDatabase();
  const { folder: cwd, write } = await makeProject({
    "tasks/both.mjs": "export default (payload, helpers) => helpers.logger.info('from the module');",
    "tasks/plain.sh": sh,
  });
  await write("tasks/both.sh", sh, { executable: true });
  await db.query("select graphile_worker.add_job('both'), graphile_worker.add_job('plain')");
  const { stdout, stderr } = await runProgram(["--once", "-c", db.url], { cwd });
  expect(stdout).toContain("from the module");
  expect(stderr).toContain("No task for 'plain'");
  expect(await db.jobs()).toMatchObject([{ task_identifier: "plain", attempts: 0 }]);
});

test("a program that prints without end fills neither the row nor the log", async () => {
  const db = await freshDatabase();
  const { folder: cwd, write } = await makeProject();
  const zeros = "head -c 30000000 /dev/zero | tr '\\0'";
  await write("tasks/line", `#!/bin/sh\n${zeros} x >&2\nexit 3\n`, { executable: true });
  await write("tasks/lines", `#!/bin/sh\nyes 'no paper' | head -n 3000000 >&2\nexit 4\n`, { executable: true });
  await db.query("select graphile_worker.add_job(name) from unnest(array['line', 'lines']) as name");
  const { code, stderr } = await runProgram(["--once", "-c", db.url], { cwd });
  expect(code).toBe(0);
  expect(stderr.length).toBeLessThan(6_000_000);
  const [line, lines] = (await db.jobs()).map(({ last_error }) => last_error!);
  expect(line!.length).toBeLessThan(9_000);
  expect(line).toMatch(/exit code 3: x+… \([\d,]+ characters cut\) …x+$/);
  expect(lines).toMatch(/exit code 4: no paper$/);
});
