import { expect, test } from "vitest";
import { freshDatabase } from "../../support/database.ts";
import { until } from "../../support/wait.ts";
import { startWorker } from "../kit.ts";

test.each(["repeatable read", "serializable"])(
  "workers in each other's way under %s work through everything without a complaint",
  async (level) => {
    const db = await freshDatabase();
    await db.query(`alter database ${db.name} set default_transaction_isolation = '${level}'`);
    const ran: string[] = [];
    const workers = await Promise.all(
      [1, 2, 3].map(() =>
        startWorker(db, { t: (_payload, { job }) => void ran.push(job.id) }, { concurrency: 5, pollInterval: 100 }),
      ),
    );
    for (let round = 0; round < 10; round++) {
      await db.query(
        "select graphile_worker.add_job('t', queue_name => 'queue ' || n % 3) from generate_series(1, 30) as n",
      );
      await db.query("select graphile_worker.add_job('t') from generate_series(1, 30) as n");
    }
    await until(async () => (await db.jobs()).length === 0, { withinMs: 60_000, what: "every job is done" });
    for (const { runner } of workers) await runner.stop();
    expect(new Set(ran).size).toBe(600);
    const complaints = workers.flatMap(({ lines }) =>
      lines.filter(({ level: of }) => of === "error" || of === "warning"),
    );
    // Each worker names the role's setting once, when it starts.
    const [named, others] = [true, false].map((isNamed) =>
      complaints.filter(({ message }) => message.startsWith("default_transaction_isolation is") === isNamed),
    );
    expect(named).toHaveLength(3);
    expect(others).toEqual([]);
  },
);
