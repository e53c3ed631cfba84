import { expect, test } from "vitest";
import { type CleanupOptions, cleanup } from "../../src/admin/cleanup.ts";
import { makeAddJob } from "../../src/client/add-job.ts";
import { type Database, poolDatabase } from "../../src/db/database.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";

interface Names {
  tasks: string[];
  queues: string[];
  jobs: string[];
}

async function look(db: TestDatabase): Promise<Names> {
  const tasks = await db.query<{ name: string }>("select identifier as name from graphile_worker._private_tasks");
  const queues = await db.query<{ name: string }>("select queue_name as name from graphile_worker._private_job_queues");
  const jobs = await db.jobs();
  return {
    tasks: tasks.map(({ name }) => name).sort(),
    queues: queues.map(({ name }) => name).sort(),
    jobs: jobs.map((job) => String(job.payload)).sort(),
  };
}

/** A waiting job, a dead one, a dead one that is locked, and names that no job uses. */
async function fill(): Promise<{ db: TestDatabase; database: Database }> {
  const db = await freshDatabase();
  const database = poolDatabase(db.pool, { schema: db.schema, preparedStatements: true });
  const addJob = makeAddJob(database, { useNodeTime: false });
  for (const state of ["waiting", "dead", "locked", "gone", "gone-locked"]) {
    await addJob(`${state}-task`, state, { queueName: `${state}-queue` });
  }
  await db.query(`
    update graphile_worker._private_jobs set attempts = max_attempts where payload::text in ('"dead"', '"locked"');
    update graphile_worker._private_jobs set locked_at = now(), locked_by = 'p' where payload::text = '"locked"';
    update graphile_worker._private_job_queues set locked_at = now(), locked_by = 'p' where queue_name = 'gone-locked-queue';
    delete from graphile_worker._private_jobs where payload::text like '"gone%'`);
  return { db, database };
}

const all: Names = {
  tasks: ["dead-task", "gone-locked-task", "gone-task", "locked-task", "waiting-task"],
  queues: ["dead-queue", "gone-locked-queue", "gone-queue", "locked-queue", "waiting-queue"],
  jobs: ["dead", "locked", "waiting"],
};
const without = (names: string[], ...gone: string[]): string[] => names.filter((name) => !gone.includes(name));

const cases: [what: string, options: CleanupOptions | undefined, left: Names][] = [
  ["without options only unused queues go", undefined, { ...all, queues: without(all.queues, "gone-queue") }],
  ["with empty options as well", {}, { ...all, queues: without(all.queues, "gone-queue") }],
  [
    "whoever names tasks to keep wants the other unused ones to go",
    { taskIdentifiersToKeep: ["gone-task"] },
    { ...all, queues: without(all.queues, "gone-queue"), tasks: without(all.tasks, "gone-locked-task") },
  ],
  [
    "names to keep are kept",
    { tasks: ["GC_TASK_IDENTIFIERS"], taskIdentifiersToKeep: ["gone-task", 'odd "name"'] },
    { ...all, tasks: without(all.tasks, "gone-locked-task") },
  ],
  [
    "dead jobs go, unless they are locked",
    { tasks: ["DELETE_PERMAFAILED_JOBS"] },
    { ...all, jobs: ["locked", "waiting"] },
  ],
  [
    "jobs go first, so that their names can follow",
    { tasks: ["GC_JOB_QUEUES", "GC_TASK_IDENTIFIERS", "DELETE_PERMAFAILED_JOBS"] },
    {
      jobs: ["locked", "waiting"],
      tasks: ["locked-task", "waiting-task"],
      queues: ["gone-locked-queue", "locked-queue", "waiting-queue"],
    },
  ],
  ["no tasks, no work", { tasks: [] }, all],
];

test.each(cases)("%s", async (_, options, left) => {
  const { db, database } = await fill();
  await cleanup(database, options);
  expect(await look(db)).toEqual(left);
});

test("a task that does not exist is refused before anything is deleted", async () => {
  const { db, database } = await fill();
  const tasks = ["GC_JOB_QUEUES", "GC_TASKS"] as unknown as NonNullable<CleanupOptions["tasks"]>;
  await expect(cleanup(database, { tasks })).rejects.toThrow("Unknown clean-up task 'GC_TASKS'");
  expect(await look(db)).toEqual(all);
});
