import { fileURLToPath } from "node:url";
import { expect, test, vi } from "vitest";
import { freshDatabase } from "../support/database.ts";
import { hasProgram } from "../support/has-program.ts";
import { mainFile, runProgram, startCommand, startProgram } from "../support/program.ts";
import { makeProject } from "../support/project.ts";

// Each test starts processes, and the machine may be busy.
vi.setConfig({ testTimeout: 60_000 });

const pseudoTerminal = fileURLToPath(new URL("../support/pseudo-terminal.py", import.meta.url));
const seed = `
  select graphile_worker.add_job('alpha');
  update graphile_worker._private_jobs set locked_at = now(), locked_by = 'w', attempts = 1;
  select from graphile_worker._hathi_write_progress('w', '{1}', '{3}', '{10}', '{third}', '{}')`;
const mainScreen = "\x1b[?1049l";

test.skipIf(!hasProgram("python3"))(
  "list --watch redraws the screen in place until q, and puts the old one back",
  async () => {
    const db = await freshDatabase();
    const { folder: cwd } = await makeProject();
    await db.query(seed);
    const args = [pseudoTerminal, process.execPath, mainFile, "list", "--watch", "--interval", "0.1"];
    const env = { TERM: "xterm-256color", DATABASE_URL: db.url, COLUMNS_OF_TERMINAL: "150" };
    const list = startCommand("python3", args, { cwd, env });
    await list.says(/alpha.*3 of 10 \(30 %\): third/);
    await db.query("select graphile_worker.add_job('beta')");
    await list.says(/beta/);
    const before = list.stdout();
    // On another screen, without a cursor; every frame begins at the top and clears what is left of the one before.
    expect(before.split("\x1b[?1049h\x1b[?25l")).toHaveLength(2);
    const frames = before.split("\x1b[H").slice(1);
    expect(frames.length).toBeGreaterThan(1);
    for (const frame of frames.slice(0, -1)) expect(frame.endsWith("\x1b[J")).toBe(true);

    // An outage is shown and waited for.
    await db.query("alter table graphile_worker._private_jobs rename to hidden");
    await list.says(/does not exist/);
    await db.query(
      "alter table graphile_worker.hidden rename to _private_jobs; select graphile_worker.add_job('gamma')",
    );
    await list.says(/gamma\b.*[\s\S]*beta/);
    list.child.stdin?.write("q");
    const { code, stdout } = await list.ended;
    expect(code).toBe(0);
    expect(stdout.trimEnd().endsWith(`\x1b[?25h${mainScreen}`)).toBe(true);
  },
);

test("in a pipe one snapshot follows the other; as JSON each is a line", async () => {
  const db = await freshDatabase();
  const { folder: cwd } = await makeProject();
  await db.query(seed);
  const env = { DATABASE_URL: db.url };
  const stats = startProgram(["stats", "--watch", "--json", "--interval", "0.1"], { cwd, env });
  await stats.says(/\n.*\n/);
  await db.query("select graphile_worker.add_job('beta')");
  await stats.says(/"waiting":1/);
  stats.kill("SIGTERM");
  const { code, stdout } = await stats.ended;
  expect(code).toBe(0);
  const snapshots = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { counts: { total: number } });
  expect(snapshots.at(0)?.counts.total).toBe(1);
  expect(snapshots.at(-1)?.counts.total).toBe(2);
  expect(stdout).not.toContain("\x1b");

  const list = startProgram(["list", "--watch", "--interval", "0.1"], { cwd, env });
  await list.says(/beta[\s\S]*ID.*\n.*beta/);
  list.kill("SIGINT");
  expect((await list.ended).code).toBe(0);
});

test("show tells how far a job is", async () => {
  const db = await freshDatabase();
  const { folder: cwd } = await makeProject();
  await db.query(seed);
  const { stdout } = await runProgram(["show", "1"], { cwd, env: { DATABASE_URL: db.url } });
  expect(stdout).toMatch(/^progress: +3 of 10 \(30 %\): third, .* ago$/m);
});

test("a mistake ends a watch at once", async () => {
  const db = await freshDatabase();
  const { folder: cwd } = await makeProject();
  const env = { DATABASE_URL: db.url };
  expect(await runProgram(["list", "--watch", "--interval", "0"], { cwd, env })).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("--interval must be a number of seconds from 0.1 up, got 0."),
  });
  expect(await runProgram(["list", "--watch", "--state", "wating"], { cwd, env })).toMatchObject({
    code: 1,
    stdout: "",
  });
});
