import { expect, test, vi } from "vitest";
import { sleep } from "../../src/util/sleep.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { dice } from "../support/dice.ts";
import { until } from "../support/wait.ts";
import { startWorker, type WorkerProcess } from "../support/worker-process.ts";
import { type CheckedLimit, checkCommits } from "./commit-check.ts";

// Eight processes start slowly on a busy machine.
vi.setConfig({ testTimeout: 240_000 });

const hour = 3_600_000;
const recovery = {
  heartbeatInterval: 300,
  sweepInterval: 500,
  sweepThreshold: 3_000,
  recoveryDelay: 0,
  crashGrace: 1_000,
};

async function count(db: TestDatabase, condition = "true"): Promise<number> {
  const rows = await db.query<{ n: number }>(
    `select count(*)::int as n from graphile_worker._private_jobs where ${condition}`,
  );
  return rows[0]!.n;
}

test("eight processes stay within random limits at every commit under kills, freezes, sweeps, cut connections and clock jumps", async () => {
  const seed = Number(process.env["SEED"] ?? 11);
  const roll = dice(seed);
  const upTo = (most: number): number => Math.floor(roll() * most);
  const db = await freshDatabase();
  const [whole, perKey, shared] = [4 + upTo(4), 1 + upTo(3), 6 + upTo(4)];
  const limits: CheckedLimit[] = [
    { tasks: ["work"], places: whole },
    { tasks: ["work"], key: "t", places: perKey },
    { tasks: ["work", "toil"], places: shared },
  ];
  const check = await checkCommits(db, limits);
  // Every other process claims by its own clock, which jumps; the rest go by the server's.
  const optionsOf = (nth: number) => ({
    connectionString: db.url,
    concurrency: 3,
    pollInterval: 1_000,
    recovery,
    limits: { shared: { concurrency: shared } },
    taskOptions: {
      work: { concurrency: [{ limit: whole }, { limit: perKey, key: "t" }], limits: ["shared"] },
      toil: { limits: ["shared"] },
    },
    ...(nth % 2 === 1 && { useNodeTime: true, clock: "right" as const }),
  });
  const workers: WorkerProcess[] = await Promise.all(
    Array.from({ length: 8 }, (_, nth) => startWorker(optionsOf(nth))),
  );
  const keys = 2 + upTo(5);
  let fed = 0;
  const feed = async (jobs: number): Promise<void> => {
    await db.query(
      `select graphile_worker.add_job(
        case when n % 4 = 0 then 'toil' else 'work' end,
        json_build_object('t', 'k' || n % $3::int, 'ms', n % 7 * 10),
        queue_name => case when n % 10 = 0 then 'q' || n % 3 end
      ) from generate_series($1::int, $2::int) as n`,
      [fed + 1, fed + jobs, keys],
    );
    fed += jobs;
  };
  const pending: Promise<unknown>[] = [];
  const did: string[] = [];
  for (let blow = 0; blow < 12; blow++) {
    await feed(Math.max(0, 70 - (await count(db))));
    const ended = fed - (await count(db));
    await until(async () => fed - (await count(db)) >= ended + 10, { withinMs: 60_000 });
    const nth = upTo(8);
    const kind = ["kill", "freeze", "cut", "jump"][blow < 4 ? blow : upTo(4)]!;
    did.push(`${kind} ${nth}`);
    await pending[nth];
    const victim = workers[nth]!;
    if (kind === "kill") {
      victim.kill("SIGKILL");
      pending[nth] = startWorker(optionsOf(nth)).then((worker) => (workers[nth] = worker));
    } else if (kind === "freeze") {
      victim.kill("SIGSTOP");
      // Long enough for the others to take it for dead.
      pending[nth] = sleep(3_500).then(() => victim.kill("SIGCONT"));
    } else if (kind === "cut") {
      await db.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend' and pid % 3 = $1`,
        [upTo(3)],
      );
    } else {
      workers[upTo(4) * 2 + 1]!.moveClock((upTo(9) - 4) * hour);
    }
  }
  await Promise.all(pending);
  await until(async () => (await count(db)) === 0, { withinMs: 120_000 });
  expect(await check.above(), `seed ${seed}: ${did.join(", ")}`).toEqual([]);
  expect(await check.commits()).toBeGreaterThan(100);
  expect(await check.most(), "the limits are used").toEqual(limits.map(({ places }) => places));
  expect(workers.map((worker) => worker.isAlive())).toEqual(workers.map(() => true));
});
