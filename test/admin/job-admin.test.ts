import { describe, expect, test } from "vitest";
import { type JobAdmin, makeJobAdmin } from "../../src/admin/job-admin.ts";
import { makeAddJob } from "../../src/client/add-job.ts";
import { poolDatabase } from "../../src/db/database.ts";
import { JobSpecError } from "../../src/errors.ts";
import type { Job, TaskSpec } from "../../src/job.ts";
import { sharedDatabase } from "../support/shared-database.ts";

const database = sharedDatabase();
const open = () => poolDatabase(database().pool, { schema: "graphile_worker", preparedStatements: true });
const admin = (): JobAdmin => makeJobAdmin(open());
const add = (spec?: TaskSpec): Promise<Job> => makeAddJob(open(), { useNodeTime: false })("t", {}, spec);

async function lock(job: Job, poolId = "pool-1"): Promise<void> {
  await database().query(
    "update graphile_worker._private_jobs set locked_at = now(), locked_by = $2, attempts = 1 where id = $1",
    [job.id, poolId],
  );
}

describe("managing jobs by hand", () => {
  test("removeJob deletes a waiting job and gives its row", async () => {
    const job = await add({ jobKey: "remove" });
    expect(await admin().removeJob("remove")).toMatchObject({ id: job.id, key: "remove" });
    expect(await database().job(job.id)).toBeUndefined();
    expect(await admin().removeJob("remove")).toBeNull();
  });

  test("removeJob lets a running job finish, but never again", async () => {
    const job = await add({ jobKey: "running" });
    await lock(job);
    expect(await admin().removeJob("running")).toMatchObject({ id: job.id, key: null, attempts: 25 });
  });

  test("completeJobs deletes what waits and leaves alone what runs", async () => {
    const [one, two, running] = [await add(), await add(), await add()];
    await lock(running);
    const done = await admin().completeJobs([one.id, two.id, running.id, "999999"]);
    expect(done.map((job) => job.id).sort()).toEqual([one.id, two.id].sort());
    expect(await database().job(one.id)).toBeUndefined();
    expect(await database().job(running.id)).toBeDefined();
  });

  test("permanentlyFailJobs uses up all attempts and keeps the reason", async () => {
    const [one, two] = [await add({ maxAttempts: 7 }), await add()];
    expect(await admin().permanentlyFailJobs([one.id], "not needed")).toMatchObject([
      { id: one.id, attempts: 7, last_error: "not needed" },
    ]);
    expect(await admin().permanentlyFailJobs([two.id])).toMatchObject([{ last_error: "Manually marked as failed" }]);
    expect(await admin().permanentlyFailJobs([two.id], "")).toMatchObject([{ last_error: "" }]);
  });

  test("rescheduleJobs changes what is given, zero included, and keeps the rest", async () => {
    const runAt = new Date("2031-01-01T00:00:00Z");
    const job = await add({ priority: 5, maxAttempts: 3, runAt });
    await admin().permanentlyFailJobs([job.id], "no");
    const [again] = await admin().rescheduleJobs([job.id], { priority: 0, attempts: 0 });
    expect(again).toMatchObject({ priority: 0, attempts: 0, max_attempts: 3, run_at: runAt, last_error: "no" });
    const [moved] = await admin().rescheduleJobs([job.id], { runAt: "2032-01-01T00:00:00Z", maxAttempts: 9 });
    expect(moved).toMatchObject({ run_at: new Date("2032-01-01T00:00:00Z"), max_attempts: 9, priority: 0 });
    const [movedAgain] = await admin().rescheduleJobs([job.id], { runAt });
    expect(movedAgain).toMatchObject({ run_at: runAt });
  });

  test("forceUnlockWorkers frees the jobs and queues of these pools and of no other", async () => {
    const [dead, alive] = [await add({ queueName: "dead" }), await add({ queueName: "alive" })];
    await lock(dead, "pool-dead");
    await lock(alive, "pool-alive");
    await database().query(
      "update graphile_worker._private_job_queues set locked_at = now(), locked_by = 'pool-' || queue_name",
    );
    await admin().forceUnlockWorkers(["pool-dead", "pool-unknown"]);
    expect(await database().job(dead.id)).toMatchObject({ locked_by: null, locked_at: null, attempts: 1 });
    expect(await database().job(alive.id)).toMatchObject({ locked_by: "pool-alive" });
    const queues = await database().query(
      "select queue_name, locked_by from graphile_worker._private_job_queues order by 1",
    );
    expect(queues).toEqual([
      { queue_name: "alive", locked_by: "pool-alive" },
      { queue_name: "dead", locked_by: null },
    ]);
  });
});

describe("requests that make no sense", () => {
  const requests: [what: string, request: (admin: JobAdmin) => Promise<unknown>, message: string][] = [
    ["a word as id", (to) => to.completeJobs(["x"]), "A job id must be a whole number such as '42', got 'x'."],
    [
      "an id beyond bigint",
      (to) => to.completeJobs(["9223372036854775808"]),
      "A job id must be a whole number such as '42', got '9223372036854775808'.",
    ],
    ["one id", (to) => to.permanentlyFailJobs("5" as unknown as string[]), "Job ids must be an array, got '5'."],
    [
      "a misspelt key",
      (to) => to.rescheduleJobs(["1"], { run_at: new Date() } as object),
      "Unknown key 'run_at' in 'rescheduleJobs'. Did you mean 'runAt'?",
    ],
    [
      "a bad date",
      (to) => to.rescheduleJobs(["1"], { runAt: "some day" }),
      "'runAt' must be a valid Date between the years 1 and 9999, got 'some day'.",
    ],
    [
      "a large priority",
      (to) => to.rescheduleJobs(["1"], { priority: 40_000 }),
      "'priority' must be a whole number from -32768 to 32767, got 40000.",
    ],
    [
      "negative attempts",
      (to) => to.rescheduleJobs(["1"], { attempts: -1 }),
      "'attempts' must be a whole number from 0 to 32767, got -1.",
    ],
    [
      "no attempts at all",
      (to) => to.rescheduleJobs(["1"], { maxAttempts: 0 }),
      "'maxAttempts' must be a whole number from 1 to 32767, got 0.",
    ],
    ["no key", (to) => to.removeJob(undefined as unknown as string), "A job key must be a string, got undefined."],
    ["a worker", (to) => to.forceUnlockWorkers("w" as unknown as string[]), "Worker ids must be an array of strings"],
  ];

  test.each(requests)("%s is refused", async (_, request, message) => {
    await expect(request(admin())).rejects.toThrow(message);
    await expect(request(admin())).rejects.toBeInstanceOf(JobSpecError);
  });

  test("ids may be numbers", async () => {
    const job = await add();
    expect(await admin().completeJobs([Number(job.id), 99_999_999n])).toMatchObject([{ id: job.id }]);
  });
});
