export type { ExpectedJob, KeptJob } from "./assert-added.ts";
export { clock, type TestClock, type TimeSpan } from "./clock.ts";
export type { JobOutcome, RunDueOptions } from "./run-jobs.ts";
export { startTestDatabase, type TestDatabase, type TestDatabaseOptions } from "./test-database.ts";
export { openTestQueue, type TestQueue, type TestQueueOptions } from "./test-queue.ts";
export type { TestWorker, TestWorkerOptions } from "./test-worker.ts";
