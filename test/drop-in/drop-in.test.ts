import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { makeProject } from "../support/project.ts";
import { until } from "../support/wait.ts";
import { type Env, endOf, installSides, type Side, type Sides } from "./sides.ts";

/* One project, written for Graphile Worker 0.18, on the original and on ours. Node 20 cannot load TypeScript by itself, and then
   neither can the original: what runs on both is the compiled project; ours runs the TypeScript files as well. */

vi.setConfig({ testTimeout: 120_000 });

let sides: Sides;
beforeAll(async () => {
  sides = await installSides();
}, 300_000);
afterAll(() => sides?.remove());

interface Place {
  readonly db: TestDatabase;
  readonly env: Env;
  /** What the plugin and the executable wrote. */
  written(): Promise<{ plugin: string[]; convert: string }>;
}

async function makePlace(side: Side): Promise<Place> {
  const db = await freshDatabase({ migrated: false });
  const plugin = join(side.folder, `${db.name}.plugin`);
  const convert = join(side.folder, `${db.name}.convert`);
  const read = (file: string): Promise<string> => readFile(file, "utf8").catch(() => "");
  return {
    db,
    env: { DATABASE_URL: db.url, PLUGIN_LOG: plugin, CONVERT_LOG: convert },
    written: async () => ({ plugin: (await read(plugin)).trim().split("\n"), convert: await read(convert) }),
  };
}

/** Does the same on both, each with a database of its own, and gives both answers. */
async function onBoth<T>(scene: (side: Side, place: Place) => Promise<T>): Promise<{ original: T; ours: T }> {
  const [original, ours] = await Promise.all(
    [sides.original, sides.ours].map(async (side) => scene(side, await makePlace(side))),
  );
  return { original: original!, ours: ours! };
}

describe("a project written for Graphile Worker", () => {
  test("compiles with ours under the name of the original", () => {
    expect(sides.complaints).toEqual({ original: "", ours: "" });
  });

  test("uses the library with the same effects, events, log and plugin calls", async () => {
    const { original, ours } = await onBoth(async (side, { env, written }) => {
      const end = await side.node("main.js", env).ended;
      expect(end, side.name).toMatchObject({ code: 0, stderr: "" });
      const { plugin, convert } = await written();
      // In run-once mode the original stops its workers before it says that the pool shuts down.
      return { report: JSON.parse(end.stdout) as Record<string, unknown>, convert, plugin: plugin.toSorted() };
    });
    expect(original.report.effects).toHaveLength(15);
    expect(original.plugin.length).toBeGreaterThan(40);
    expect(ours).toEqual(original);
  });

  test("finds the same schema after --schema-only, also under another name", async () => {
    const { original, ours } = await onBoth(async (side, { db, env }) => {
      const first = await side.command(["--schema-only"], env).ended;
      const other = await side.command(["-c", db.url, "-s", "other_queue", "--schema-only"], { DATABASE_URL: "" })
        .ended;
      const migrations = await db.query("select id, breaking from graphile_worker.migrations order by id");
      const others = await db.query("select id, breaking from other_queue.migrations order by id");
      return { first: endOf(first), other: endOf(other), migrations, others };
    });
    expect(original).toMatchObject({ first: { code: 0 }, other: { code: 0 } });
    expect(ours).toEqual(original);
  });

  test("runs what is due with --once, and cleans up with --cleanup", async () => {
    const { original, ours } = await onBoth(async (side, { db, env, written }) => {
      await side.command(["--schema-only"], env).ended;
      await db.query(await readFile(join(side.folder, "src/schema.sql"), "utf8"));
      await db.query("insert into app.users (email) values ('ada@example.com')");
      await db.query(`
        select graphile_worker.add_job('convert', '[1]', job_key := 'broken', max_attempts := 1),
          graphile_worker.add_job('note', '{}'), graphile_worker.add_job('unheard-of', queue_name := 'unheard-of'),
          graphile_worker.add_job('flaky', '{"failures":1}', run_at := now() + interval '1 day')`);
      const flags = ["--once", "-j", "2", "-m", "4", "--poll-interval", "500", "--no-prepared-statements"];
      const once = await side.command(flags, env).ended;
      const run = await stateOf(db);
      const effects = await db.query("select task, attempt, payload, extra from app.effects order by task");
      const { plugin, convert } = await written();

      await db.query("delete from graphile_worker._private_jobs where key is null");
      const cleanup = ["--cleanup", "GC_TASK_IDENTIFIERS,GC_JOB_QUEUES", "--cleanup", "DELETE_PERMAFAILED_JOBS"];
      const cleaned = await side.command(cleanup, env).ended;
      const ends = [endOf(once), endOf(cleaned)];
      return { ends, run, effects, convert, plugin: plugin.toSorted(), cleaned: await stateOf(db) };
    });
    expect(original.ends).toEqual([
      { code: 0, signal: null },
      { code: 0, signal: null },
    ]);
    expect(original.effects).toHaveLength(3);
    expect(ours).toEqual(original);
  });

  test("runs until it is interrupted, with the crontab and the config file that it is told", async () => {
    const { original, ours } = await onBoth(async (side, { db, env, written }) => {
      await side.command(["--schema-only"], env).ended;
      await db.query(await readFile(join(side.folder, "src/schema.sql"), "utf8"));
      await db.query(
        "insert into graphile_worker._private_known_crontabs values ('digest', now() - interval '2 days')",
      );
      const program = side.command(["--crontab", "./crontab", "--config", "./graphile.config.js"], env);
      await program.says(/Worker connected and looking for jobs/);
      await db.query("insert into app.users (email) values ('ada@example.com')");
      const tasks = await until(async () => {
        const rows = await db.query<{ task: string }>("select distinct task from app.effects order by task");
        return rows.length >= 4 && rows.map(({ task }) => task);
      });
      program.kill("SIGINT");
      const end = await program.ended;
      const isHeard = (end.stdout + end.stderr).includes("Received 'SIGINT'; attempting global graceful shutdown");
      const crontabs = await db.query("select identifier from graphile_worker._private_known_crontabs order by 1");
      const { plugin } = await written();
      return { end: endOf(end), state: { isHeard, tasks, crontabs, plugin, ...(await stateOf(db)) } };
    });
    expect(original.state.isHeard).toBe(true);
    expect(ours.state).toEqual(original.state);
    // The guide says so: to be stopped by hand is no failure.
    expect([original.end, ours.end]).toEqual([
      { code: null, signal: "SIGINT" },
      { code: 0, signal: null },
    ]);
  });

  test("ends with the same exit codes when something is wrong", async () => {
    const { original, ours } = await onBoth(async (side, { db, env }) => {
      const codeOf = async (args: string[], more: Env = {}): Promise<unknown> =>
        endOf(await side.command(args, { ...env, ...more }).ended);
      const answers = {
        help: await codeOf(["--help"]),
        both: await codeOf(["--once", "--schema-only"]),
        unknown: await codeOf(["--nonsense"]),
        noDatabase: await codeOf(["--once"], { DATABASE_URL: "" }),
        noServer: await codeOf(["--once"], { DATABASE_URL: "postgres://127.0.0.1:1/nowhere" }),
        noConfig: await codeOf(["--once", "--config", "missing.js"]),
        noCrontab: await codeOf(["--once", "--crontab", "schema.sql"]),
        cleanup: await codeOf(["--cleanup", "NONSENSE"]),
      };
      await side.command(["--schema-only"], env).ended;
      await db.query("insert into graphile_worker.migrations (id, breaking) values (1000000, true)");
      return { answers, tooNew: await codeOf(["--once"]) };
    });
    expect(original.answers).toMatchObject({ help: { code: 0 }, unknown: { code: 1 }, noDatabase: { code: 1 } });
    expect(ours.answers).toEqual(original.answers);
    // The original promises 57 for a schema that is too new, but its command ends with 1.
    expect([original.tooNew, ours.tooNew]).toMatchObject([{ code: 1 }, { code: 57 }]);
  });

  test("runs on ours from its TypeScript files as well, without being compiled", async () => {
    const side = sides.ours;
    const { db, env, written } = await makePlace(side);
    const source = join(side.folder, "src");
    expect(await side.command(["--schema-only"], env, source).ended).toMatchObject({ code: 0 });
    await db.query(await readFile(join(source, "schema.sql"), "utf8"));
    await db.query("insert into app.users (email) values ('ada@example.com')");
    expect(await side.command(["--once"], env, source).ended).toMatchObject({ code: 0 });
    const effects = await db.query<{ task: string }>("select task from app.effects order by task");
    expect(effects.map(({ task }) => task)).toEqual(["legacy", "send-email", "users/welcome"]);
    expect((await written()).plugin).toContain("hook startWorker true null 8 2");
  });
});

test("a package that asks for the original as its peer is content with ours once an override says so", async () => {
  const plugin = { name: "a-plugin", version: "1.0.0", peerDependencies: { "graphile-worker": "^0.18.0" } };
  const dependencies = { "graphile-worker": "npm:hathi@^0.1.0", "a-plugin": "file:a-plugin" };
  const project = await makeProject({
    // The plugin comes in as if it were from a registry.
    ".npmrc": "install-links=true\n",
    "a-plugin/package.json": JSON.stringify(plugin),
    "package.json": JSON.stringify({ private: true, dependencies }),
  });
  await expect(sides.npmInstall(project.folder)).rejects.toThrow("ERESOLVE");
  const overrides = { "graphile-worker": "$graphile-worker" };
  await project.write("package.json", JSON.stringify({ private: true, dependencies, overrides }));
  await sides.npmInstall(project.folder);
  const installed = await readFile(project.path("node_modules/graphile-worker/package.json"), "utf8");
  expect(JSON.parse(installed)).toMatchObject({ name: "hathi" });
});

/** What is in the tables, without what depends on the moment. */
async function stateOf(db: TestDatabase): Promise<object> {
  const names = (table: string, column: string): Promise<Record<string, unknown>[]> =>
    db.query(`select ${column} as name from graphile_worker.${table} order by 1`);
  return {
    tasks: await names("_private_tasks", "identifier"),
    queues: await names("_private_job_queues", "queue_name"),
    jobs: await db.query(`
      select task_identifier, queue_name, key, priority, attempts, max_attempts, locked_by, flags, revision
      from graphile_worker.jobs order by task_identifier`),
  };
}
