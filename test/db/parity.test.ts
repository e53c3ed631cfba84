import { expect, test } from "vitest";
import { loadOriginal } from "../compat/original.ts";
import { freshDatabase } from "../support/database.ts";
import { describeSchema, type SchemaDescription } from "../support/describe-schema.ts";

/** What the Rust port has too. */
const ofRustPort =
  /^(_private_(job_retirements|workers)|worker_(heartbeat|deregister)|(list_(stale|orphan_locked)|delete_stale)_workers|recover_dead_)/;

/** Functions for SQL clients that Graphile Worker has no counterpart of. */
const ofOurs =
  /^(cancel_jobs|pause_work|resume_work|list_pauses|add_(debounced|throttled|singleton)_job|(set|clear)_limit)\(/;

/** Ours may add things under names of its own and of the Rust port; everything else must be what Graphile Worker makes. */
function withoutAdditions(part: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(part).filter(
      ([name]) => !/(^|\.)_hathi_/.test(name) && !ofRustPort.test(name) && !ofOurs.test(name),
    ),
  );
}

test("a fresh install is, to every client, what Graphile Worker 0.18 makes", async () => {
  const theirs = await freshDatabase({ migrated: false });
  const { runMigrations } = await loadOriginal("0.18");
  await runMigrations({ connectionString: theirs.url });
  const ours = await freshDatabase();

  const [expected, actual] = [await describeSchema(theirs), await describeSchema(ours)];
  for (const part of Object.keys(expected) as Array<keyof SchemaDescription>) {
    expect(withoutAdditions(actual[part]), part).toEqual(expected[part]);
  }
  expect(Object.keys(expected.columns).length).toBeGreaterThan(50);
  // Column order is part of the interface: rows travel as composites.
  expect(Object.keys(withoutAdditions(actual.columns))).toEqual(Object.keys(expected.columns));

  const ledger = "select id, breaking from graphile_worker.migrations order by id";
  expect(await ours.query(ledger)).toEqual(await theirs.query(ledger));
});

test("no public function has a second signature", async () => {
  const database = await freshDatabase();
  expect(
    await database.query(`
      select proname from pg_proc where pronamespace = 'graphile_worker'::regnamespace
      group by proname having count(*) > 1`),
  ).toEqual([]);
});
