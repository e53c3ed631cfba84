import { readFile, symlink } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { freshDatabase } from "../support/database.ts";
import { installPackage } from "../support/installed-package.ts";
import { startCommand } from "../support/program.ts";
import { makeProject, type Project } from "../support/project.ts";

/* The examples of docs/typed-tasks.md, exactly as they stand there. */

const root = fileURLToPath(new URL("../..", import.meta.url));

async function makeExample(): Promise<Project> {
  const page = await readFile(join(root, "docs/typed-tasks.md"), "utf8");
  const blocks = [...page.matchAll(/^```ts \[(.+?)\]\n([\s\S]*?)^```$/gm)];
  return makeProject({
    "package.json": '{ "type": "module" }',
    ...Object.fromEntries(blocks.map(([, name, code]) => [name, code ?? ""])),
  });
}

test("the examples compile", { timeout: 60_000 }, async () => {
  const project = await makeExample();
  await symlink(join(root, "node_modules"), project.path("node_modules"), "dir");
  await project.write(
    "tsconfig.json",
    JSON.stringify({
      extends: join(root, "tsconfig.json"),
      compilerOptions: {
        typeRoots: [join(root, "node_modules/@types")],
        paths: { hathi: [join(root, "src/index.ts")] },
      },
      include: ["src"],
    }),
  );
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const { stdout, code } = await startCommand(process.execPath, [tsc, "-p", "."], { cwd: project.folder, input: "" })
    .ended;
  expect(stdout.split("\n").filter((line) => line.startsWith("src/"))).toEqual([]);
  expect(code, stdout).toBe(0);
});

test("the examples do what they say", { timeout: 60_000 }, async () => {
  const db = await freshDatabase();
  const project = await makeExample();
  await installPackage(project.folder, ["zod"]);
  await project.write("tasks/welcome.ts", 'export { welcome as default } from "../src/welcome.ts";');
  const jiti = join(root, "node_modules/jiti/lib/jiti-cli.mjs");
  const env = { DATABASE_URL: db.url };
  const main = await startCommand(process.execPath, [jiti, "src/main.ts"], { cwd: project.folder, env, input: "" })
    .ended;
  expect(main.code, main.stderr).toBe(0);
  expect(main.stdout).toContain("The payload does not fit task 'send-invoice': 'due': ");
  expect(main.stdout).toContain("tidied up 30 days");
  expect(main.stdout).toContain("1 × invoice for ada, due Fri Jan 31 2031");
  expect(main.stdout).toContain("2 × invoice for bob");
  expect((await db.jobs()).map(({ task_identifier, payload }) => [task_identifier, payload])).toEqual([
    ["send-mails", [{ to: "nobody" }]],
    ["an-old-task", { anything: true }],
  ]);

  await db.query(`select graphile_worker.add_job('welcome', '{"fullName":"Ada Lovelace"}')`);
  const cli = join(project.folder, "node_modules/hathi/dist/cli/main.js");
  const check = await startCommand(process.execPath, [cli, "check"], { cwd: project.folder, env, input: "" }).ended;
  expect(check.stdout, check.stderr).toBe("✓ 1 job checked: all fit.\n");
  const once = await startCommand(process.execPath, [cli, "--once"], { cwd: project.folder, env, input: "" }).ended;
  expect(once.stdout, once.stderr).toContain("Welcome, Ada!");
});
