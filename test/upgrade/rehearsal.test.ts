import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { expect, onTestFinished, test, vi } from "vitest";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { originalSchema } from "../support/original-schema.ts";
import { applyRustPort } from "../support/rust-port.ts";
import { startOriginal, startWorker } from "../support/worker-process.ts";
import { asOldWorker, rehearse, workerOptions } from "./rehearse.ts";
import { startRustWorker } from "./rust-worker.ts";

// Every released schema is upgraded while workers of its version and producers use it.
vi.setConfig({ testTimeout: 180_000 });

const here = fileURLToPath(new URL(".", import.meta.url));

test.each(["0.16.0", "0.16", "0.17.2", "0.17", "0.18"] as const)(
  "the upgrade from Graphile Worker %s disturbs neither its workers nor producers",
  async (version) => {
    const database = await originalSchema(version);
    await rehearse(database, async () => asOldWorker(await startOriginal(workerOptions(database), version)));
  },
);

test.each([19, 20, 21, 22] as const)(
  "the upgrade from revision %i of the Rust port disturbs neither its workers nor producers",
  async (revision) => {
    const database = await originalSchema("0.16");
    await applyRustPort(database, revision);
    await rehearse(database, async () => startRustWorker(database, { beats: revision >= 20 }));
  },
);

/** Installs the schema with a built library. */
async function install(database: TestDatabase, library: string): Promise<void> {
  const { runMigrations, Logger } = await import(/* @vite-ignore */ pathToFileURL(library).href);
  await runMigrations({ connectionString: database.url, logger: new Logger(() => () => undefined) });
}

// `npm run release` puts a folder there for each release.
const released = existsSync(join(here, "released")) ? readdirSync(join(here, "released")) : [];
for (const version of released) {
  test(`the upgrade from our release ${version} disturbs neither its workers nor producers`, async () => {
    const library = join(here, "released", version, "index.js");
    const database = await freshDatabase({ migrated: false });
    await install(database, library);
    await rehearse(database, async () => asOldWorker(await startWorker(workerOptions(database), library)));
  });
}

test("the upgrade from this version to a next one, with an index and a table more, disturbs neither workers nor producers", async () => {
  // Below the root, where its dependencies are.
  const cache = fileURLToPath(new URL("../../node_modules/.cache/", import.meta.url));
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, "hathi-released-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const script = fileURLToPath(new URL("../../scripts/snapshot-release.mjs", import.meta.url));
  expect(spawnSync(process.execPath, [script, folder], { encoding: "utf8" })).toMatchObject({ status: 0 });
  const library = join(folder, "index.js");
  const database = await freshDatabase({ migrated: false });
  await install(database, library);
  await rehearse(database, async () => asOldWorker(await startWorker(workerOptions(database), library)), {
    toNext: true,
  });
});
