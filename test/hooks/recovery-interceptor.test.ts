import { expect, test } from "vitest";
import { Lifecycle } from "../../src/hooks/lifecycle.ts";
import type { JobRecoveryResult } from "../../src/hooks/results.ts";
import { deferred } from "../../src/util/deferred.ts";
import { freshDatabase, type JobRow, type TestDatabase } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { recorder, startRunner } from "./kit.ts";

const later = new Date("2099-01-01T00:00:00Z");

/** A job, in a queue, that outlasts its worker's grace period; what the hook answers decides about it. */
async function interrupt(
  answer: (db: TestDatabase, id: string) => JobRecoveryResult | Promise<JobRecoveryResult>,
): Promise<{ row: JobRow; told: string[]; asked: unknown[]; queueLock: string | null }> {
  const db = await freshDatabase();
  const started = deferred();
  const seen = recorder("jobInterrupted", "jobFail", "jobComplete");
  const asked: unknown[] = [];
  const runner = await startRunner(
    db,
    {
      slow: (_, { abortPromise }) => {
        started.resolve();
        return abortPromise;
      },
    },
    {
      shutdownGracePeriod: 10,
      gracefulShutdownAbortTimeout: 60_000,
      interruptedJobRetryDelay: 0,
      hooks: {
        ...seen.hooks,
        jobRecovery: ({ job, workerId, previousWorkerId, reason }) => {
          asked.push([job.id, workerId === previousWorkerId, reason]);
          return answer(db, job.id);
        },
      },
    },
  );
  const job = await runner.addJob("slow", {}, { queueName: "q", jobKey: "k" });
  await started.promise;
  await runner.stop();
  expect(asked).toEqual([[job.id, true, "shutdown"]]);
  const [queue] = await db.query<{ locked_by: string | null }>(
    "select locked_by from graphile_worker._private_job_queues",
  );
  return { row: (await db.job(job.id))!, told: seen.names(), asked, queueLock: queue!.locked_by };
}

test.each<JobRecoveryResult>([undefined, "default"])("answered by %s, the job is returned", async (answer) => {
  const { row, told, queueLock } = await interrupt(() => answer);
  expect(row).toMatchObject({ attempts: 0, locked_by: null, last_error: "Job recovered after worker interruption" });
  expect([told, queueLock]).toEqual([["jobInterrupted"], null]);
});

test("rescheduled, the job runs then, with its attempt restored", async () => {
  const { row, told, queueLock } = await interrupt(() => ({ reschedule: { runAt: later } }));
  expect(row).toMatchObject({ attempts: 0, locked_by: null, run_at: later });
  expect([told, queueLock]).toEqual([["jobInterrupted"], null]);
});

test("rescheduled with attempts, the job has used that many", async () => {
  const { row } = await interrupt(async () => ({ reschedule: { runAt: later, attempts: 7 } }));
  expect(row).toMatchObject({ attempts: 7, locked_by: null, run_at: later });
});

test("a job whose key was taken away while it ran is not revived by being rescheduled", async () => {
  const { row } = await interrupt(async (db) => {
    await db.query("select graphile_worker.remove_job('k')");
    return { reschedule: { runAt: later, attempts: 0 } };
  });
  expect(row).toMatchObject({ key: null, locked_by: null, attempts: row.max_attempts });
});

test("failed with back-off, the attempt counts and the job waits as after any failure", async () => {
  const { row, told, queueLock } = await interrupt(() => "failWithBackoff");
  expect(row).toMatchObject({ attempts: 1, locked_by: null, last_error: "Job recovered after worker interruption" });
  expect(row.run_at.getTime()).toBeGreaterThan(row.created_at.getTime() + 2_000);
  expect([told, queueLock]).toEqual([["jobInterrupted"], null]);
});

test("skipped, the job stays locked as it is", async () => {
  const { row, told, queueLock } = await interrupt(() => "skip");
  expect(row).toMatchObject({ attempts: 1, locked_by: expect.stringMatching(/^pool-/), last_error: null });
  expect([told, queueLock]).toEqual([[], row.locked_by]);
});

test.each<[string, () => unknown]>([
  ["throws", () => Promise.reject(new Error("broken"))],
  ["answers what nobody understands", () => ({ reschedule: { runAt: "soon" } })],
])("a hook that %s leaves the job to the next hook, and to the default", async (_, broken) => {
  const { logger, lines } = rememberingLogger();
  const details = { job: {} as never, workerId: "w", previousWorkerId: "dead", reason: "workerCrashed" as const };
  const alone = new Lifecycle({ jobRecovery: [broken as never] }, logger);
  expect(await alone.askRecovery(details)).toBe("default");
  const followed = new Lifecycle({ jobRecovery: [broken as never, () => "skip"] }, logger);
  expect(await followed.askRecovery(details)).toBe("skip");
  expect(await followed.askRecovery(details)).toBe("skip");
  expect(lines.filter(({ level }) => level === "error")).toHaveLength(2);
  expect(lines[0]?.message).toMatch(/^A hook 'jobRecovery' failed: (broken|The hook 'jobRecovery' answered)/);
});
