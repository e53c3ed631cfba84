import { expect, test } from "vitest";
import { listenTo } from "../support/notifications.ts";
import { bothWays } from "./both-ways.ts";

bothWays(({ fresh, isOurs }) => {
  test("every add is announced with a count, and every removal with -1", async () => {
    const database = await fresh();
    const { payloads } = await listenTo(database.url, "jobs:insert");
    const counts = async (): Promise<unknown[]> =>
      (await payloads()).map((payload) => {
        const { r, count } = JSON.parse(payload) as { r: number; count: number };
        expect(r).toBeTypeOf("number");
        return count;
      });
    const three =
      "array(select row('greet', null, null, null, null, null, null, null)::graphile_worker.job_spec from generate_series(1, 3))";

    await database.query("select graphile_worker.add_job('greet')");
    expect(await counts()).toEqual([1]);
    await database.query("select graphile_worker.add_job('greet', job_key => 'k')");
    expect(await counts()).toEqual([1]);
    // A replaced job may have become due, so it is announced like a new one.
    await database.query("select graphile_worker.add_job('greet', job_key => 'k')");
    expect(await counts()).toEqual([1]);
    await database.query(`select graphile_worker.add_jobs(${three})`);
    expect(await counts()).toEqual([3]);

    await database.query("select graphile_worker.add_job('greet', job_key => 'd', job_key_mode => 'unsafe_dedupe')");
    expect(await counts()).toEqual([1]);
    await database.query("select graphile_worker.add_job('greet', job_key => 'd', job_key_mode => 'unsafe_dedupe')");
    expect(await counts()).toEqual([]);

    await database.query("select graphile_worker.remove_job('k')");
    expect(await counts()).toEqual([-1]);
    await database.query(
      "update graphile_worker._private_jobs set locked_at = now(), locked_by = 'pool-1' where key = 'd'",
    );
    await database.query("select graphile_worker.remove_job('d')");
    await database.query("select graphile_worker.remove_job('unknown')");
    expect(await counts()).toEqual([]);
  });

  test("two adds in one transaction are announced separately", async () => {
    const database = await fresh();
    const { payloads } = await listenTo(database.url, "jobs:insert");
    await database.query("select graphile_worker.add_job('greet'), graphile_worker.add_job('greet')");
    expect(await payloads()).toHaveLength(2);
  });

  test("an add of nothing wakes nobody, though the channel hears of it", async () => {
    const database = await fresh();
    const { payloads } = await listenTo(database.url, "jobs:insert");
    await database.query("select graphile_worker.add_jobs(array[]::graphile_worker.job_spec[])");
    const [payload = "nothing"] = await payloads();
    // The original sends no text at all, which its own workers take for one job.
    if (isOurs) expect(JSON.parse(payload)).toMatchObject({ count: 0 });
    else expect(payload).toBe("");
  });
});
