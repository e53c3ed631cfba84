import { build as esbuild } from "esbuild";
import { rolldown } from "rolldown";
import { expect, test, vi } from "vitest";
import { freshDatabase } from "../support/database.ts";
import { installPackage } from "../support/installed-package.ts";
import { startCommand } from "../support/program.ts";
import { makeProject } from "../support/project.ts";
import { until } from "../support/wait.ts";

/* Applications that are bundled into one file, and run where there is no node_modules. */

// Bundles, and starts two processes; the machine may be busy.
vi.setConfig({ testTimeout: 120_000 });

const source = {
  "producer.mjs": `
    import { makeWorkerUtils } from "hathi";
    async function main() {
      const utils = await makeWorkerUtils({ connectionString: process.env.DATABASE_URL });
      const job = await utils.addJob("block", { name: "Ada" });
      await utils.release();
      console.log("added " + job.id);
    }
    void main();`,
  "worker.mjs": `
    import { existsSync } from "node:fs";
    import { run } from "hathi";
    async function main() {
      const block = () => {
        console.log("blocking");
        while (!existsSync("go"));
      };
      const runner = await run({
        connectionString: process.env.DATABASE_URL,
        recovery: { heartbeatInterval: 100 },
        taskList: { block },
      });
      await runner.promise;
    }
    void main();`,
};

/** What people put before an ES module of esbuild, because `pg` calls `require`. */
const banner = { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" };

type Bundle = (input: string, output: string) => Promise<unknown>;
const bundlers: Record<string, Bundle> = {
  "esbuild, CommonJS": (input, outfile) =>
    esbuild({ entryPoints: [input], outfile, bundle: true, platform: "node", logLevel: "error" }),
  "esbuild, ES modules": (input, outfile) =>
    esbuild({
      entryPoints: [input],
      outfile,
      bundle: true,
      platform: "node",
      format: "esm",
      banner,
      logLevel: "error",
    }),
  "rolldown, ES modules": (input, file) => bundleWithRolldown(input, file, "esm"),
  "rolldown, CommonJS": (input, file) => bundleWithRolldown(input, file, "cjs"),
};

async function bundleWithRolldown(input: string, file: string, format: "esm" | "cjs"): Promise<void> {
  const bundle = await rolldown({ input, platform: "node", external: ["pg-native"], logLevel: "silent" });
  await bundle.write({ format, file, codeSplitting: false });
  await bundle.close();
}

test.each(Object.keys(bundlers))("a producer and a worker run as one file each (%s)", async (name) => {
  const db = await freshDatabase({ migrated: false });
  const project = await makeProject(source);
  await installPackage(project.folder, ["pg", "graphile-config", "@graphile/logger", "json5"]);
  const stage = await makeProject();
  const extension = name.endsWith("CommonJS") ? "cjs" : "mjs";
  for (const entry of ["producer", "worker"]) {
    await bundlers[name]!(project.path(`${entry}.mjs`), stage.path(`${entry}.${extension}`));
  }
  const start = (entry: string) =>
    startCommand(process.execPath, [stage.path(`${entry}.${extension}`)], {
      cwd: stage.folder,
      env: { DATABASE_URL: db.url },
    });

  expect(await start("producer").ended).toMatchObject({ code: 0, stdout: expect.stringMatching(/added 1\n/) });
  const worker = start("worker");
  await worker.says(/blocking/);
  // The event loop is blocked, so a heartbeat that advances comes from the thread.
  const heartbeat = async (): Promise<number | undefined> =>
    (
      await db.query<{ at: Date }>("select last_heartbeat_at as at from graphile_worker._private_workers")
    )[0]?.at.getTime();
  const before = await until(heartbeat, { what: "the worker is registered" });
  await until(async () => (await heartbeat()) !== before, { what: "the heartbeat advances" });
  await stage.write("go", "");
  await until(async () => (await db.jobs()).length === 0, { what: "the job is done" });
  worker.kill("SIGTERM");
  const { code, stderr } = await worker.ended;
  expect(stderr).not.toMatch(/main thread/);
  expect(code).toBe(0);
});
