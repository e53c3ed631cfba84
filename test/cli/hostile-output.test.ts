import { expect, test, vi } from "vitest";
import type { PauseTarget } from "../../src/pause.ts";
import { utilsOf } from "../control/kit.ts";
import { runCommand } from "../support/command.ts";
import { freshDatabase } from "../support/database.ts";
import { runProgram } from "../support/program.ts";
import { makeProject } from "../support/project.ts";
import { startWorker } from "../worker/kit.ts";

// Each test starts several processes, and the machine may be busy.
vi.setConfig({ testTimeout: 120_000 });

const evil = "\x1b]0;owned\x07\x1b[2Jx\nstate:      waiting\r\u202e";
/** Control characters but the line feed, and marks of direction. */
const control = /[^\P{Cc}\n]|[\u2028\u2029\u202e]/u;

async function fillHostile(): Promise<{ ask: (...args: string[]) => Promise<string>; id: string }> {
  const db = await freshDatabase();
  const project = await makeProject();
  const [row] = await db.query<{ id: string }>(
    `select id from graphile_worker.add_job('t' || $1::text, '{}', queue_name => 'q' || $1, job_key => 'k' || $1, flags => array['f' || $1])`,
    [evil],
  );
  await db.query("update graphile_worker._private_jobs set attempts = max_attempts, last_error = 'e' || $1::text", [
    evil,
  ]);
  await db.query("update graphile_worker._private_job_queues set locked_by = 'w' || $1::text, locked_at = now()", [
    evil,
  ]);
  await db.query(
    `insert into graphile_worker._private_known_crontabs (identifier, known_since) values ('c' || $1::text, now())`,
    [evil],
  );
  const ask = async (...args: string[]): Promise<string> => {
    const { stdout, stderr } = await runCommand(args, { cwd: project.folder, env: { DATABASE_URL: db.url } });
    return stdout + stderr;
  };
  return { ask, id: row!.id };
}

test("no command prints terminal escapes or line breaks of names, keys and errors as they are", async () => {
  const { ask, id } = await fillHostile();
  for (const args of [
    ["list"],
    ["show", id],
    ["why", id],
    ["stats"],
    ["queues"],
    ["workers"],
    ["cron", "list"],
    ["doctor"],
  ]) {
    const text = await ask(...args);
    expect(text, args.join(" ")).not.toMatch(control);
    expect(text.match(/^state: +waiting/gm) ?? [], args.join(" ")).toEqual([]);
    if (args[0] !== "doctor") expect(text, args.join(" ")).toContain("\\x1b]0;owned\\x07\\x1b[2Jx");
  }
  expect(await ask("list", "--task", `t${evil}`)).toContain("\\x1b");
  expect(await ask("add", evil)).not.toMatch(control);
  expect(await ask("remove", evil)).not.toMatch(control);
  expect(await ask("show", evil)).not.toMatch(control);
});

test("no command prints what is kept of finished jobs, pauses, limits, actions and workers as it is", async () => {
  const db = await freshDatabase();
  const project = await makeProject();
  const task = `t${evil}`;
  await db.query(
    "select graphile_worker.add_job($1, json_build_object('k', $2::text), job_key => $2, queue_name => $2, max_attempts => 1)",
    [task, evil],
  );
  const worker = await startWorker(
    db,
    {
      [task]: (_, { reportProgress }) => {
        reportProgress({ done: 1, total: 2, note: evil });
        throw new Error(`e${evil}`);
      },
    },
    {
      history: "full",
      recovery: true,
      limits: { [`l${evil}`]: { concurrency: 3 } },
      taskOptions: { [task]: { limits: [`l${evil}`], concurrency: { limit: 3, key: `k${evil}` } } },
    },
  );
  await worker.completed(1);
  const { job } = worker.of("job:complete")[0]!;
  const utils = await utilsOf(db);
  const targets: PauseTarget[] = [{ task }, { queue: evil }, { worker: evil }, { cron: evil }];
  for (const target of targets) await utils.pause(target, { reason: `r${evil}`, by: `b${evil}` });
  await utils.setLimit(`l${evil}`, { limit: 2 });
  await utils.setLimit(task, { limit: 1, key: `v${evil}` });
  const { id } = await utils.beginAction({ action: `a${evil}`, by: `b${evil}`, target: { [evil]: task } });
  await utils.reportAction(id, { changed: 1, outcome: "failed", message: `m${evil}` });
  await db.query(
    `insert into graphile_worker._private_workers (id, last_heartbeat_at, metadata)
     values ($1, now(), jsonb_build_object('pid', 1, 'hostname', $1::text, 'host', $1::text))`,
    [evil],
  );
  for (const args of [
    ["history"],
    ["errors"],
    ["show", job.id],
    ["why", job.id],
    ["limits"],
    ["pauses"],
    ["audit"],
    ["workers"],
    ["stats"],
    ["queues"],
    ["doctor"],
    ["force-unlock", evil],
    ["sweep", "--dry-run", "--sweep-threshold", "0s"],
    ["retry", "--task", task],
    ["set-limit", task, "--limit", "2"],
    ["clear-limit", task],
    ["resume", "--task", task],
    ["pause", "--task", task, "--reason", evil],
  ]) {
    const { stdout, stderr } = await runCommand(args, { cwd: project.folder, env: { DATABASE_URL: db.url } });
    const text = stdout + stderr;
    expect(text, args.join(" ")).not.toMatch(control);
    expect(text.match(/^state: +waiting/gm) ?? [], args.join(" ")).toEqual([]);
    if (args.length < 3 && !["doctor", "queues", "clear-limit"].includes(args[0]!))
      expect(text, args.join(" ")).toContain("\\x1b]0;owned");
  }
});

test("a text log shows the escapes of task names, errors and executables' output as text", async () => {
  const db = await freshDatabase();
  const project = await makeProject();
  await project.write(
    "tasks/speak",
    `#!/bin/sh\nprintf 'out\\033[2J\\n'\nprintf 'err\\033]0;owned\\007\\n' >&2\nexit 1\n`,
    {
      executable: true,
    },
  );
  await project.write(
    "tasks/throw.mjs",
    `export default () => { throw new Error("bad\\x1b[2J\\n00:00:00 INFO core all is well"); };`,
  );
  await db.query("select graphile_worker.add_job('speak', max_attempts => 1)");
  await db.query("select graphile_worker.add_job('throw', max_attempts => 1)");
  const { stdout, stderr } = await runProgram(["run", "--once", "--log-format", "text"], {
    cwd: project.folder,
    env: { DATABASE_URL: db.url },
  });
  const text = stdout + stderr;
  expect(text).toContain("out\\x1b[2J");
  expect(text).toContain("err\\x1b]0;owned\\x07");
  expect(text).toContain("bad\\x1b[2J");
  expect(text).not.toMatch(control);
  expect(text).not.toMatch(/^00:00:00/m);
});
