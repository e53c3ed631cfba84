import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test, vi } from "vitest";
import { linkPackage } from "../docs/packed.ts";
import { freshDatabase } from "../support/database.ts";
import { startCommand } from "../support/program.ts";
import { makeProject, type Project } from "../support/project.ts";

/* The package as a CommonJS project and older compilers see it, built as `npm test` builds it. */

vi.setConfig({ testTimeout: 120_000 });

const packages = ["pg", "@types", "@graphile", "graphile-config"];
const { exports } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
  exports: Record<string, unknown>;
};
const entries = Object.keys(exports)
  .filter((path) => path !== "./package.json")
  .map((path) => path.replace(/^\./, "hathi"));

async function makeLinkedProject(files: Record<string, string>): Promise<Project> {
  const project = await makeProject(files);
  await linkPackage(project.folder, packages);
  return project;
}

test("require gives every entry without a warning, and the worker works", async () => {
  const db = await freshDatabase();
  const project = await makeLinkedProject({
    "main.cjs": `
      for (const entry of ${JSON.stringify(entries)}) console.log(entry, Object.keys(require(entry)).length > 0);
      const { makeWorkerUtils, runOnce } = require("hathi");
      async function main() {
        const connectionString = process.env.DATABASE_URL;
        const utils = await makeWorkerUtils({ connectionString });
        await utils.addJob("greet", { name: "Ada" });
        await utils.release();
        await runOnce({ connectionString, taskList: { greet: ({ name }) => console.log("greeting " + name) } });
      }
      void main();`,
  });
  const env = { DATABASE_URL: db.url };
  const { code, stdout, stderr } = await startCommand(process.execPath, ["main.cjs"], { cwd: project.folder, env })
    .ended;
  expect(stderr).toBe("");
  for (const entry of entries) expect(stdout).toContain(`${entry} true\n`);
  expect(stdout).toContain("greeting Ada\n");
  expect(code).toBe(0);
});

const compiler5 = fileURLToPath(new URL("node_modules/typescript-5/lib/tsc.js", import.meta.url));
const compiler7 = fileURLToPath(new URL("../../node_modules/typescript/bin/tsc", import.meta.url));

test.each([
  ["TypeScript 5", "commonjs", "node10", compiler5],
  ["TypeScript 5", "node16", "node16", compiler5],
  ["TypeScript 5", "esnext", "bundler", compiler5],
  ["TypeScript 7", "nodenext", "nodenext", compiler7],
  ["TypeScript 7", "esnext", "bundler", compiler7],
])(
  "%s finds the types of every entry (module: %s, moduleResolution: %s)",
  async (_name, module, resolution, compiler) => {
    const use = entries.map((entry, index) => `import * as entry${index} from "${entry}";`).join("\n");
    const text = `${use}
    import { run, type Task } from "hathi";
    import { startTestDatabase } from "hathi/testing";
    export const greet: Task = async (_payload, { job }) => console.log(job.id, run, startTestDatabase, ${entries.map((_, index) => `entry${index}`).join()});
    // @ts-expect-error: types that were not found would be any.
    export const wrong: number = run;
    // @ts-expect-error
    export const wrongToo: number = startTestDatabase;`;
    const project = await makeLinkedProject({ "module.mts": text, "script.cts": text, "plain.ts": text });
    const flags = [
      "--noEmit",
      "--strict",
      "--skipLibCheck",
      "--esModuleInterop",
      "--target",
      "es2022",
      "--types",
      "node",
    ];
    const args = [compiler, ...flags, "--module", module, "--moduleResolution", resolution];
    const compile = promisify(execFile)(process.execPath, [...args, "module.mts", "script.cts", "plain.ts"], {
      cwd: project.folder,
    });
    const output = await compile.then(
      () => "",
      ({ stdout }: { stdout: string }) => stdout,
    );
    expect(output).toBe("");
  },
);
