import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { makeAddJobs } from "../../src/client/add-jobs.ts";
import { poolDatabase } from "../../src/db/database.ts";
import { freshDatabase } from "../support/database.ts";

const batchSize = 10_000;
/** MANY_JOBS=1000000 for the whole million; the slope of memory shows with fewer. */
const total = Number(process.env.MANY_JOBS ?? 200_000);

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

function heapInMegabytes(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed / 2 ** 20;
}

test("adding jobs without end, in batches of 10,000, stays flat in memory", { timeout: 600_000 }, async () => {
  const db = await freshDatabase();
  const addJobs = makeAddJobs(poolDatabase(db.pool, { schema: db.schema, preparedStatements: true }), {
    useNodeTime: false,
  });
  const heap: number[] = [];
  for (let first = 0; first < total; first += batchSize) {
    const specs = Array.from({ length: batchSize }, (_, index) => ({
      identifier: `task-${index % 10}`,
      payload: { id: first + index, text: "some text to carry along" },
    }));
    const rows = await addJobs(specs);
    expect(rows).toHaveLength(batchSize);
    expect(rows.at(-1)?.payload).toEqual(specs.at(-1)?.payload);
    heap.push(heapInMegabytes());
  }
  expect(await db.query("select count(*)::int as count from graphile_worker._private_jobs")).toEqual([
    { count: total },
  ]);
  // The first batches warm caches up; after them nothing may pile up.
  const growth = heap.at(-1)! - heap[2]!;
  expect(growth, `heap in MB after each batch: ${heap.map((size) => size.toFixed(1)).join(" ")}`).toBeLessThan(10);
});
