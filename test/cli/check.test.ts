import { dirname, join } from "node:path";
import { expect, test, vi } from "vitest";
import { builtLibrary } from "../support/built-library.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { installPackage } from "../support/installed-package.ts";
import { type ProgramEnd, startCommand } from "../support/program.ts";
import { makeProject } from "../support/project.ts";

// Each test starts several processes, and the machine may be busy.
vi.setConfig({ testTimeout: 120_000 });

const mail = `
  import { defineTask } from "hathi";
  import { z } from "zod";
  export default defineTask({
    identifier: "mail",
    payload: z.strictObject({ to: z.string(), lines: z.array(z.object({ sku: z.string() })).default([]) }),
    upgrade: [{ from: z.object({ address: z.string() }), to: ({ address }) => ({ to: address }) }],
    run: () => undefined,
  });`;

async function openDesk(): Promise<{ db: TestDatabase; check(...args: string[]): Promise<ProgramEnd> }> {
  const db = await freshDatabase();
  const { folder } = await makeProject({
    "tasks/mail.mjs": mail,
    "tasks/plain.mjs": "export default () => undefined;",
  });
  await installPackage(folder, ["zod"]);
  const main = join(dirname(builtLibrary()), "cli/main.js");
  return {
    db,
    check: (...args) =>
      startCommand(process.execPath, [main, "check", ...args], {
        cwd: folder,
        env: { DATABASE_URL: db.url },
        input: "",
      }).ended,
  };
}

test("check is content when every waiting job fits, also after an upgrade, and says what it could not check", async () => {
  const { db, check } = await openDesk();
  await db.query(`select graphile_worker.add_job('mail', '{"to":"ada"}')`);
  await db.query(`select graphile_worker.add_job('mail', '{"address":"old"}')`);
  const trace = { trace_id: "0af7651916cd43dd8448eb211c80319c", span_id: "b7ad6b7169203331", flags: 1 };
  await db.query("select graphile_worker.add_job('mail', $1)", [{ to: "bob", _trace: trace }]);
  await db.query("select graphile_worker.add_job('plain', '{}')");
  const { code, stdout, stderr } = await check();
  expect(stdout).toBe("✓ 3 jobs checked: all fit.\n");
  expect(stderr).toBe("Not checked: 1 job of 'plain', which has no definition here.\n");
  expect(code).toBe(0);
});

test("check lists the jobs that would fail, with the place, and ends with 1; jobs that are dead do not count", async () => {
  const { db, check } = await openDesk();
  await db.query(`select graphile_worker.add_job('mail', '{"to":"ada"}')`);
  await db.query(
    `select graphile_worker.add_job('mail', '{"to":5}', job_key => 'k', run_at => now() + interval '1 day')`,
  );
  await db.query(`select graphile_worker.add_job('mail', '{"to":"bob","lines":[{"sku":"a"},{}]}')`);
  await db.query(`select graphile_worker.add_job('mail', '{}')`);
  await db.query("update graphile_worker._private_jobs set attempts = max_attempts where id = 4");
  const { code, stdout } = await check();
  expect(code).toBe(1);
  expect(stdout).toMatch(
    /^✗ job 2 \(mail, key 'k'\)\n {4}to: .*string.*\n✗ job 3 \(mail\)\n {4}lines\[1\]\.sku: .*\n✗ 3 jobs checked: 2 would fail\.\n$/,
  );
});

test("check answers in JSON, reads in pages, and names as many as it is asked for", async () => {
  const { db, check } = await openDesk();
  await db.query(
    `select graphile_worker.add_job('mail', json_build_object('to', case when i % 2 = 0 then '"x"'::json else '5'::json end))
     from generate_series(1, 1200) as i`,
  );
  const { code, stdout } = await check("--json", "--limit", "3");
  expect(code).toBe(1);
  const report = JSON.parse(stdout);
  expect(report).toMatchObject({ checked: 1200, unfit: 600, unchecked: [] });
  expect(report.jobs.map(({ id }: { id: string }) => id)).toEqual(["1", "3", "5"]);
  expect(report.jobs[0]).toEqual({
    id: "1",
    task: "mail",
    key: null,
    issues: [{ path: "to", message: expect.any(String) }],
  });
});
