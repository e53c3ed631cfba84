import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { builtLibrary } from "../support/built-library.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { startCommand } from "../support/program.ts";
import { addJob } from "./kit.ts";

async function hathi(database: TestDatabase, ...args: string[]): Promise<string> {
  const main = join(dirname(builtLibrary()), "cli/main.js");
  const program = startCommand(process.execPath, [main, ...args, "-c", database.url], { cwd: tmpdir(), input: "" });
  const { code, stdout, stderr } = await program.ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return stdout;
}

test("hathi sweep takes back the jobs of dead workers, and with --dry-run only says which", async () => {
  const database = await freshDatabase();
  expect(await hathi(database, "sweep")).toBe("No worker is dead.\n");
  const id = await addJob(database, "task", {}, { queue: "q" });
  await database.query(
    `insert into graphile_worker._private_workers (id, last_heartbeat_at, metadata)
      values ('dead', now() - interval '1 hour', '{"pid": 7, "hostname": "far"}')`,
  );
  await database.query("update graphile_worker._private_jobs set locked_by = 'dead', locked_at = now(), attempts = 1");
  expect(await hathi(database, "workers")).toMatch(/^dead +silent +process 7 on far/m);

  const said = await hathi(database, "sweep", "--dry-run");
  expect(said).toMatch(
    /^Worker dead \(process 7 on far\) sent no heartbeat for too long: 1 job would be recovered\.$/m,
  );
  expect(said).toMatch(new RegExp(`^ *${id} +task +dead +would be recovered$`, "m"));
  expect(await database.job(id)).toMatchObject({ locked_by: "dead" });
  expect(await hathi(database, "sweep", "--dry-run", "--sweep-threshold", "2h")).toBe("No worker is dead.\n");

  const result = JSON.parse(await hathi(database, "sweep", "--json", "--recovery-delay", "0s"));
  expect(result).toMatchObject({ isDone: true, workerIds: ["dead"], recoveredCount: 1, jobs: [{ id }] });
  const [job] = await database.query("select locked_by, run_at <= now() as is_due from graphile_worker._private_jobs");
  expect(job).toEqual({ locked_by: null, is_due: true });
  expect(await hathi(database, "sweep")).toBe("No worker is dead.\n");
}, 60_000);
