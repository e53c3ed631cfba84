import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startEmbedded } from "@hathi/embedded";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { checkServer } from "../../src/db/adopt.ts";
import { quickAddJob } from "../../src/index.ts";
import { runOnce } from "../../src/runner/run.ts";
import { runMigrations } from "../../src/runner/run-migrations.ts";
import { rememberingLogger } from "../support/log.ts";

test("PostgreSQL 13 is refused with one clear error, before anything is written", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "hathi-old-"));
  const nativeDir = fileURLToPath(new URL("../postgres", import.meta.url));
  const server = await startEmbedded({ dataDir, profile: "test", version: "13", nativeDir });
  onTestFinished(async () => {
    await server.stop();
    rmSync(dataDir, { recursive: true, force: true });
    rmSync(server.clusterDir, { recursive: true, force: true });
  });
  const { logger, lines } = rememberingLogger();
  const options = { connectionString: server.connectionString, logger };
  const refusal = {
    code: "BAD_CONFIG",
    message: "PostgreSQL 14 or newer is needed, but the server is 13; please upgrade it.",
  };
  await expect(runMigrations(options)).rejects.toMatchObject(refusal);
  await expect(runOnce({ ...options, taskList: { t: () => undefined } })).rejects.toMatchObject(refusal);
  await expect(quickAddJob(options, "t", {})).rejects.toMatchObject(refusal);
  expect(lines).toEqual([]);

  const client = new pg.Client({ connectionString: server.connectionString });
  await client.connect();
  onTestFinished(() => client.end());
  const { rows } = await client.query("select nspname from pg_namespace where nspname !~ '^pg_|^information_schema$'");
  expect(rows).toEqual([{ nspname: "public" }]);
}, 60_000);

test.each([110_022, 120_022, 139_999])("version number %i is refused", (postgresVersion) => {
  expect(() => checkServer({ postgresVersion })).toThrow(
    /^PostgreSQL 14 or newer is needed, but the server is 1[123];/,
  );
});

test("version number 140000 is accepted", () => {
  expect(() => checkServer({ postgresVersion: 140_000 })).not.toThrow();
});
