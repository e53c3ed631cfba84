import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { blocksOf, readPage, root } from "../../docs/pages.ts";
import { startCommand } from "../../support/program.ts";
import { sharedDatabase } from "../../support/shared-database.ts";
import { startPrefixProxy, takeJourney } from "../journey.ts";

/*
 * The programs of docs/dashboard.md, run as they are, with the built package. Their frameworks are in a package of their own, which scripts/test.mjs installs. Next has a test
 * of its own: test/examples/next.test.ts.
 */

vi.setConfig({ testTimeout: 90_000 });

const here = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const folder = here("documented");
const database = sharedDatabase();
const password = "correct horse battery";
const headers = { authorization: `Basic ${Buffer.from(`ops:${password}`).toString("base64")}` };

const programs = new Map(
  blocksOf(readPage("docs/dashboard.md")).flatMap(({ file, text }) =>
    file?.endsWith(".mjs") ? [[file, text] as const] : [],
  ),
);
/** What the reader has already. */
const module = `
  import "reflect-metadata";
  import { Module } from "@nestjs/common";
  export class AppModule {}
  Module({})(AppModule);`;
const plain = `
  import { createServer } from "node:http";
  import { dashboard } from "./dashboard.mjs";
  createServer((request, response) => void dashboard.node(request, response)).listen(process.env.PORT);`;

beforeAll(() => {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(join(folder, "node_modules"), { recursive: true });
  symlinkSync(root, join(folder, "node_modules/hathi"), "junction");
  for (const [name, text] of programs) writeFileSync(join(folder, name), text);
  for (const version of ["4", "5"]) {
    const text = programs.get("express.mjs")!.replace('from "express"', `from "express-${version}"`);
    writeFileSync(join(folder, `express-${version}.mjs`), text);
  }
  writeFileSync(join(folder, "app.module.mjs"), module);
  writeFileSync(join(folder, "node-http.mjs"), plain);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("the documents show every framework", () => {
  const names = ["dashboard", "express", "fastify", "hono", "koa", "nest"].map((name) => `${name}.mjs`);
  expect([...programs.keys()]).toEqual(names);
});

test.each(["express-4", "express-5", "fastify", "hono", "koa", "nest", "node-http"])(
  "%s, below a path, with bodies that were parsed before, and behind a proxy that changes path and host",
  async (name) => {
    const program = startCommand(process.execPath, ["--import", here("announce.mjs"), join(folder, `${name}.mjs`)], {
      cwd: folder,
      env: { PORT: "0", DATABASE_URL: database().url, DASHBOARD_PASSWORD: password },
    });
    const [, port] = await program.says(/listening on (\d+)/);
    const proxy = await startPrefixProxy(Number(port));
    try {
      const mount = `http://localhost:${port}/admin/hathi`;
      expect((await fetch(mount)).status).toBe(401);
      await takeJourney(mount, headers);
      await takeJourney(`${proxy.url}/admin/hathi`, headers);
    } finally {
      await proxy.stop();
    }
  },
);
