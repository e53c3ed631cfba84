import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test, vi } from "vitest";
import { blocksOf, readPage, root } from "../../docs/pages.ts";
import { freshDatabase } from "../../support/database.ts";
import { startCommand } from "../../support/program.ts";

/* The program of docs/frameworks.md, run as it is, with the built package. It is here because Express is. */

vi.setConfig({ testTimeout: 90_000 });

const here = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const [program] = blocksOf(readPage("docs/frameworks.md")).filter(({ file }) => file === "server.mjs");

test.each(["4", "5"])("a server on Express %s adds the job with its row, or neither", async (version) => {
  const folder = here(`producer-${version}`);
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, "node_modules"), { recursive: true });
  symlinkSync(root, join(folder, "node_modules/hathi"), "junction");
  writeFileSync(join(folder, "server.mjs"), program!.text.replace('from "express"', `from "express-${version}"`));
  const db = await freshDatabase();
  await db.query("create table users (name text not null)");
  const server = startCommand(process.execPath, ["--import", here("announce.mjs"), join(folder, "server.mjs")], {
    cwd: folder,
    env: { PORT: "0", DATABASE_URL: db.url },
  });
  const [, port] = await server.says(/listening on (\d+)/);
  const signUp = (body: object): Promise<Response> =>
    fetch(`http://localhost:${port}/users`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });

  const answer = await signUp({ name: "Ada" });
  expect(answer.status).toBe(202);
  const { job } = (await answer.json()) as { job: string };
  expect((await signUp({})).status).toBe(500);
  expect(await db.query("select name from users")).toEqual([{ name: "Ada" }]);
  expect(await db.jobs()).toMatchObject([{ id: job, task_identifier: "welcome" }]);

  server.kill("SIGTERM");
  expect(await server.ended).toMatchObject({ code: 0 });
});
