import { expect, test, vi } from "vitest";
import { freshDatabase } from "../support/database.ts";
import { runProgram, startProgram } from "../support/program.ts";
import { makeProject, type Project } from "../support/project.ts";
import { until } from "../support/wait.ts";

// Each test starts several processes, and the machine may be busy.
vi.setConfig({ testTimeout: 120_000 });

const hello = "export default (payload, helpers) => helpers.logger.info('Hello ' + payload.name);";
const project = (files: Record<string, string> = {}): Promise<Project> =>
  makeProject({ "tasks/hello.mjs": hello, ...files });

test("--once runs what is due on ./tasks, says so, and ends with 0", async () => {
  const db = await freshDatabase();
  const { folder: cwd } = await project();
  await db.query(`select graphile_worker.add_job('hello', '{"name":"Ada"}')`);
  const end = await runProgram(["--once", "-c", db.url], { cwd });
  expect(end).toMatchObject({ code: 0, stderr: "" });
  expect(end.stdout).toMatch(/^\d\d:\d\d:\d\d INFO {2}hello\{1\} Hello Ada$/m);
  expect(end.stdout).toMatch(/Completed task 1 \(hello, \d+\.\d+ms\) with success/);
  expect(await db.jobs()).toEqual([]);
});

test("--once frees a lock that is four hours old before it looks for jobs, and its queue's", async () => {
  const db = await freshDatabase();
  const { folder: cwd } = await project();
  await db.query(`select graphile_worker.add_job('hello', '{"name":"Ada"}', queue_name => 'q')`);
  for (const table of ["_private_jobs", "_private_job_queues"]) {
    await db.query(
      `update graphile_worker.${table} set locked_by = 'crashed', locked_at = now() - interval '241 minutes'`,
    );
  }
  const end = await runProgram(["--once", "-c", db.url], { cwd });
  expect(end).toMatchObject({ code: 0, stdout: expect.stringContaining("Hello Ada") });
  expect(await db.jobs()).toEqual([]);
});

test("NO_LOG_SUCCESS hides successes, and GRAPHILE_LOGGER_DEBUG shows debug messages", async () => {
  const db = await freshDatabase();
  const { folder: cwd } = await project({
    "tasks/chatty.mjs": "export default (payload, helpers) => helpers.logger.debug('whisper');",
  });
  const once = async (env: Record<string, string>): Promise<string> => {
    await db.query("select graphile_worker.add_job('chatty')");
    return (await runProgram(["--once", "-c", db.url], { cwd, env })).stdout;
  };
  expect(await once({})).not.toContain("whisper");
  expect(await once({ GRAPHILE_LOGGER_DEBUG: "1" })).toContain("DEBUG chatty{2} whisper");
  expect(await once({ NO_LOG_SUCCESS: "1" })).not.toContain("with success");
});

test("--log-format json writes one object per line, and auto does so where there is no terminal", async () => {
  const db = await freshDatabase();
  const { folder: cwd } = await project({ "tasks/broken.mjs": "export default () => { throw new Error('boom'); };" });
  for (const format of ["json", "auto"]) {
    await db.query(`select graphile_worker.add_job('hello', '{"name":"Ada"}'), graphile_worker.add_job('broken')`);
    const { stdout, code } = await runProgram(["--once", "-c", db.url, "--log-format", format], { cwd });
    expect(code).toBe(0);
    const lines = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines).toContainEqual(
      expect.objectContaining({ level: "info", message: "Hello Ada", taskIdentifier: "hello", label: "job" }),
    );
    expect(lines).toContainEqual(
      expect.objectContaining({ level: "error", error: expect.objectContaining({ message: "boom" }) }),
    );
  }
});

test("JSON logs carry a job without its payload, unless logPayloads asks for it; then long strings are cut", async () => {
  const db = await freshDatabase();
  const { folder: cwd } = await project({
    "tasks/broken.mjs": "export default () => { throw new Error('boom', { cause: { code: 42 } }); };",
    "config.mjs": "export default { worker: { logPayloads: true } };",
  });
  const once = async (...args: string[]): Promise<{ stdout: string; jobs: Record<string, unknown>[] }> => {
    const payload = JSON.stringify({ name: "Ada", password: "s3cret", long: "x".repeat(1_000_000) });
    await db.query(
      "select graphile_worker.add_job(task, $1, max_attempts => 1) from unnest(array['hello', 'broken']) as task",
      [payload],
    );
    const { stdout } = await runProgram(["--once", "-c", db.url, "--log-format", "json", ...args], { cwd });
    const lines = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    // A success is logged when it is written, so it may come before or after the failure.
    const jobs = lines.filter(({ job }) => job).toSorted((a, b) => Number("success" in a) - Number("success" in b));
    return { stdout, jobs };
  };
  const quiet = await once();
  expect(quiet.stdout).not.toContain("s3cret");
  expect(quiet.jobs).toEqual([
    expect.objectContaining({
      job: expect.objectContaining({ task_identifier: "broken", attempts: 1, job_queue_id: null }),
      error: expect.objectContaining({ message: "boom", cause: { message: '{"code":42}' } }),
      duration: expect.any(Number),
      failure: true,
    }),
    expect.objectContaining({
      job: expect.objectContaining({ id: "1", task_identifier: "hello", attempts: 1 }),
      duration: expect.any(Number),
      success: true,
    }),
  ]);
  for (const given of [["--config", "config.mjs"], ["--log-payloads"]]) {
    const { stdout, jobs } = await once(...given);
    expect(jobs.map(({ job }) => (job as { payload: object }).payload)).toEqual(
      Array(2).fill(expect.objectContaining({ password: "s3cret", long: expect.stringMatching(/^x+… .* cut.* …x+$/) })),
    );
    expect(stdout.length).toBeLessThan(100_000);
  }
});

test("text logs show what a task logs beside its message, and what caused an error", async () => {
  const db = await freshDatabase();
  const { folder: cwd } = await project({
    "tasks/tells.mjs": `export default (payload, { logger }) => {
      logger.info("Sent", { to: "ada", pages: [1, 2] });
      throw new TypeError("fetch failed", { cause: new Error("connect ECONNREFUSED") });
    };`,
  });
  await db.query("select graphile_worker.add_job('tells')");
  const { stdout, stderr } = await runProgram(["--once", "-c", db.url], { cwd });
  expect(stdout).toContain("INFO  tells{1} Sent to=ada pages=[1,2]\n");
  expect(stderr).toMatch(
    /with error 'fetch failed':\n {2}TypeError: fetch failed\n.*\n {4}cause: Error: connect ECONN/s,
  );
  expect((await db.jobs())[0]!.last_error).toBe("fetch failed\n  cause: Error: connect ECONNREFUSED");
});

test("--schema-only installs the schema under the name given by --schema", async () => {
  const db = await freshDatabase({ migrated: false, schema: "odd name" });
  const { folder: cwd } = await makeProject();
  const end = await runProgram(["--schema-only", "-c", db.url, "-s", "odd name"], { cwd });
  expect(end).toMatchObject({ code: 0, stdout: "Schema updated\n", stderr: "" });
  expect(await db.query("select id from graphile_worker.migrations where id = 20")).toEqual([{ id: 20 }]);
});

test("DATABASE_URL, GRAPHILE_WORKER_SCHEMA and the PG* variables name the database", async () => {
  const db = await freshDatabase();
  const { folder: cwd } = await project();
  const url = new URL(db.url);
  const variables = {
    PGHOST: url.hostname,
    PGPORT: url.port,
    PGUSER: url.username,
    PGPASSWORD: url.password,
    PGDATABASE: url.pathname.slice(1),
  };
  for (const env of [{ DATABASE_URL: db.url }, variables]) {
    await db.query(`select graphile_worker.add_job('hello', '{"name":"Ada"}')`);
    expect(await runProgram(["--once"], { cwd, env })).toMatchObject({ code: 0 });
    expect(await db.jobs()).toEqual([]);
  }
  const env = { DATABASE_URL: db.url, GRAPHILE_WORKER_SCHEMA: "elsewhere" };
  expect(await runProgram(["--schema-only"], { cwd, env })).toMatchObject({ code: 0 });
  expect(await db.query("select from pg_namespace where nspname = 'elsewhere'")).toHaveLength(1);
});

test("a config file's values hold unless a flag is given, whatever kind of file it is", async () => {
  const db = await freshDatabase();
  const files: Record<string, string> = {
    "graphile.config.ts":
      "const jobs: number = 7; export default { worker: { concurrentJobs: jobs, preparedStatements: false } };",
    "hathi.config.mts": "export default { worker: { concurrentJobs: 7 as number, preparedStatements: false } };",
    "graphile.config.cjs": "module.exports = { worker: { concurrentJobs: 7, preparedStatements: false } };",
    "hathi.config.mjs": "export default { worker: { concurrentJobs: 7, preparedStatements: false } };",
    "graphile.config.js":
      "exports.__esModule = true; exports.default = { worker: { concurrentJobs: 7, preparedStatements: false } };",
  };
  const plugin = `
    export default {
      extends: [(await import(process.env.REAL_CONFIG)).default],
      plugins: [{ name: "Tell", worker: { hooks: { init(ctx) {
        const { concurrentJobs, preparedStatements } = ctx.resolvedPreset.worker;
        console.log(JSON.stringify({ concurrentJobs, preparedStatements }));
      } } } }],
    };`;
  for (const [name, text] of Object.entries(files)) {
    const { folder: cwd } = await project({ [name]: text });
    const plain = await runProgram(["--once", "-c", db.url, "-j", "3"], { cwd });
    expect(plain, name).toMatchObject({ code: 0 });
  }
  const tell = await project({
    "hathi.config.mjs": files["hathi.config.mjs"]!,
    "tell.mjs": plugin,
  });
  const env = { REAL_CONFIG: tell.path("hathi.config.mjs") };
  const told = async (...args: string[]): Promise<string> =>
    (await runProgram(["--once", "-c", db.url, "-C", "tell.mjs", ...args], { cwd: tell.folder, env })).stdout;
  expect(await told()).toContain('{"concurrentJobs":7,"preparedStatements":false}');
  expect(await told("--jobs", "3")).toContain('{"concurrentJobs":3,"preparedStatements":false}');
});

test("numbers and switches of the command line reach the worker, in kebab and in camel case", async () => {
  const db = await freshDatabase();
  const { folder: cwd } = await project({
    "hathi.config.mjs": `export default { plugins: [{ name: "Tell", worker: { hooks: { init(ctx) {
      const { concurrentJobs, maxPoolSize, pollInterval, preparedStatements, crontabFile, schema } = ctx.resolvedPreset.worker;
      console.log(JSON.stringify([concurrentJobs, maxPoolSize, pollInterval, preparedStatements, crontabFile, schema]));
    } } } }] };`,
    mycron: "",
  });
  const told = async (...args: string[]): Promise<unknown> => {
    const { stdout, stderr } = await runProgram(["--once", "-c", db.url, ...args], { cwd });
    return JSON.parse(stdout.split("\n")[0] || `"${stderr}"`);
  };
  const wanted = [4, 5, 600, false, `${cwd}/mycron`, "other"];
  const short = [
    "-j",
    "4",
    "-m",
    "5",
    "--poll-interval",
    "600",
    "--no-prepared-statements",
    "--crontab",
    "mycron",
    "-s",
    "other",
  ];
  const camel = [
    "--jobs=4",
    "--maxPoolSize=5",
    "--pollInterval=600",
    "--noPreparedStatements",
    "--crontab=mycron",
    "--schema=other",
  ];
  expect(await told(...short)).toEqual(wanted);
  expect(await told(...camel)).toEqual(wanted);
});

test("--cleanup cleans up and exits, and keeps the names of local tasks", async () => {
  const db = await freshDatabase();
  const { folder: cwd } = await project();
  await db.query(
    `select graphile_worker.add_job('hello', max_attempts => 1), graphile_worker.add_job('old', queue_name => 'q')`,
  );
  await db.query("update graphile_worker._private_jobs set attempts = max_attempts");
  await db.query("delete from graphile_worker._private_jobs where task_id = 2 or max_attempts > 1");
  const end = await runProgram(
    ["-c", db.url, "--cleanup", "GC_TASK_IDENTIFIERS,GC_JOB_QUEUES", "--cleanup=DELETE_PERMAFAILED_JOBS"],
    { cwd },
  );
  expect(end).toMatchObject({ code: 0, stderr: "" });
  expect(await db.jobs()).toEqual([]);
  expect(await db.query("select identifier from graphile_worker._private_tasks")).toEqual([{ identifier: "hello" }]);
  expect(await db.query("select from graphile_worker._private_job_queues")).toEqual([]);
});

test("SIGTERM lets the running job end, takes no other, and ends with 0", async () => {
  const db = await freshDatabase();
  const { folder: cwd, write } = await project({
    "tasks/slow.mjs": `
      import { existsSync } from "node:fs";
      export default async (payload, helpers) => {
        helpers.logger.info("begun");
        while (!existsSync("go")) await new Promise((resolve) => setTimeout(resolve, 20));
      };`,
  });
  await db.query("select graphile_worker.add_job('slow'), graphile_worker.add_job('slow')");
  const program = startProgram(["-c", db.url], { cwd });
  await program.says(/begun/);
  program.kill("SIGTERM");
  await program.says(/Received 'SIGTERM'/);
  await write("go", "");
  expect(await program.ended).toMatchObject({ code: 0, signal: null });
  const left = await db.jobs();
  expect(left).toMatchObject([{ attempts: 0, locked_at: null }]);
});

test("SIGHUP lets the running job end, and ends with 129", async () => {
  const db = await freshDatabase();
  const { folder: cwd } = await project();
  const program = startProgram(["-c", db.url], { cwd });
  await program.says(/looking for jobs/);
  program.kill("SIGHUP");
  expect(await program.ended).toMatchObject({ code: 129, signal: null });
  expect(program.stdout() + program.stderr()).toContain("No job is running.");
});

test("a second SIGINT, once it can be no echo of the first, gives up the running job and ends with 1", async () => {
  const db = await freshDatabase();
  const { folder: cwd } = await project({
    "tasks/stuck.mjs":
      "export default (payload, helpers) => { helpers.logger.info('begun'); return new Promise(() => setInterval(() => {}, 1000)); };",
  });
  await db.query("select graphile_worker.add_job('stuck')");
  const program = startProgram(["-c", db.url], { cwd });
  await program.says(/begun/);
  program.kill("SIGINT");
  await program.says(/Received 'SIGINT'/);
  // Signals within five seconds are taken for an echo, so it has to be told again until it listens.
  await until(
    async () => {
      program.kill("SIGINT");
      return /Received 'SIGINT' again/.test(program.stderr());
    },
    { what: "the second signal is obeyed" },
  );
  expect(await program.ended).toMatchObject({ code: 1 });
  await until(async () => (await db.jobs())[0]?.locked_at === null, { what: "the job is unlocked" });
});

test("a breaking schema ends the program with 57", async () => {
  const db = await freshDatabase();
  const { folder: cwd } = await project();
  await db.query("insert into graphile_worker.migrations (id, breaking) values (999, true)");
  const end = await runProgram(["-c", db.url], { cwd });
  expect(end.code).toBe(57);
  expect(end.stderr.trim().split("\n")).toHaveLength(1);
  expect(end.stderr).toContain("999");
});

test("a breaking migration while it runs drains the worker and ends it with 57", async () => {
  const db = await freshDatabase();
  const { folder: cwd } = await project();
  const program = startProgram(["-c", db.url], { cwd });
  await program.says(/looking for jobs/);
  const end = await until(
    async () => {
      await db.query("insert into graphile_worker.migrations (id, breaking) values (999, true) on conflict do nothing");
      await db.query(`select pg_notify('worker:migrate', '{"migrationNumber":999,"breaking":true}')`);
      return program.child.exitCode !== null;
    },
    { what: "the program ends" },
  ).then(() => program.ended);
  expect(end.code).toBe(57);
});
