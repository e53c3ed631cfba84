import { expect, onTestFinished, test, vi } from "vitest";
import { makeWorkerUtils, type QueueUtils } from "../../src/index.ts";
import { runCommand } from "../support/command.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { makeProject } from "../support/project.ts";

vi.setConfig({ testTimeout: 120_000 });

async function open(): Promise<{ db: TestDatabase; utils: QueueUtils }> {
  const db = await freshDatabase();
  const utils = await makeWorkerUtils({ connectionString: db.url, logger: rememberingLogger().logger });
  onTestFinished(() => utils.release());
  return { db, utils };
}

test("why names every pause that stands in a job's way, with who, when, until and reason", async () => {
  const { utils } = await open();
  const job = await utils.addJob("mail", {}, { queueName: "q" });
  const until = new Date(Date.now() + 3_600_000);
  const pauses = [
    await utils.pause({ task: "mail" }, { reason: "provider is down", by: "ann", until }),
    await utils.pause({ queue: "q" }),
    await utils.pause({ all: true }),
  ];
  await utils.pause({ task: "other" });
  const { reasons } = await utils.explainJob(job.id);
  const named = reasons.filter((reason) => reason.kind === "paused");
  expect(named.map(({ pause }) => pause)).toEqual(pauses);
  const { message } = named[0]!;
  expect(message).toContain(`Paused: task 'mail', by ann at ${pauses[0]!.pausedAt.toISOString()}`);
  expect(message).toContain(`until ${until.toISOString()}. Reason: provider is down.`);
  expect(message).toContain("To resume: hathi resume --task mail");
  // The lock of the pause is not taken for a worker's.
  expect(reasons.map(({ kind }) => kind)).not.toContain("queue-held");
});

test("why tells the pause of a queue from the job that holds it", async () => {
  const { db, utils } = await open();
  const [first, second] = [
    await utils.addJob("mail", {}, { queueName: "q" }),
    await utils.addJob("mail", {}, { queueName: "q" }),
  ];
  await db.query("update graphile_worker._private_jobs set locked_by = 'pool-1', locked_at = now() where id = $1", [
    first.id,
  ]);
  await db.query("update graphile_worker._private_job_queues set locked_by = 'pool-1', locked_at = now()");
  await utils.pause({ queue: "q" });
  const { reasons } = await utils.explainJob(second.id);
  expect(reasons.map(({ kind }) => kind).slice(0, 2)).toEqual(["paused", "queue-held"]);
  expect(reasons[1]).toMatchObject({ by: "pool-1", since: expect.any(Date), job: { id: first.id } });
  // What a sweep returns stays behind the pause.
  await db.query("select graphile_worker.recover_dead_worker_jobs(array['pool-1'])");
  expect(await db.query("select locked_by from graphile_worker._private_job_queues")).toEqual([
    { locked_by: "hathi:paused" },
  ]);
  expect(await db.job(first.id)).toMatchObject({ locked_by: null });
});

test("lists of jobs, queues and workers, counts and the doctor carry pauses", async () => {
  const { db, utils } = await open();
  const mail = await utils.addJob("mail", {});
  const queued = await utils.addJob("other", {}, { queueName: "q" });
  await utils.addJob("other", {});
  await db.query("select graphile_worker.worker_heartbeat('pool-1')");
  await db.query("select graphile_worker.worker_heartbeat('pool-2')");
  const task = await utils.pause({ task: "mail" });
  const queue = await utils.pause({ queue: "q" });
  const worker = await utils.pause({ worker: "pool-1" });

  const { jobs } = await utils.listJobs();
  expect(jobs.map(({ pause }) => pause)).toEqual([null, queue, task]);
  expect(await utils.getJob(mail.id)).toMatchObject({ pause: task });
  expect(await utils.listQueues()).toMatchObject([{ queue_name: "q", pause: queue, locked_at: null, locked_by: null }]);
  const workers = await utils.listWorkers();
  expect(Object.fromEntries(workers.map(({ id, pause }) => [id, pause]))).toEqual({ "pool-1": worker, "pool-2": null });
  expect((await utils.getJobStats()).pauses).toEqual([task, queue, worker]);
  const check = (await utils.examineHealth()).find(({ name }) => name === "pauses");
  expect(check).toMatchObject({ status: "warning", message: expect.stringContaining("task 'mail', paused by") });
  expect(check!.message).toContain("Workers of Graphile Worker obey pauses of queues only.");

  // They are waiting jobs like others.
  expect(await utils.rescheduleJobs([mail.id], { priority: 5 })).toMatchObject([{ priority: 5 }]);
  expect(await utils.permanentlyFailJobs([queued.id])).toHaveLength(1);
  expect(await utils.completeJobs([queued.id])).toHaveLength(1);
  await utils.addJob("mail", {}, { jobKey: "key" });
  expect(await utils.removeJob("key")).not.toBeNull();
});

test("the program pauses, lists and resumes", async () => {
  const { db, utils } = await open();
  await utils.addJob("mail", {}, { queueName: "q" });
  const { folder } = await makeProject({});
  const hathi = (...args: string[]) => runCommand(args, { cwd: folder, env: { DATABASE_URL: db.url } });
  expect((await hathi("pauses")).stderr).toContain("Nothing is paused.");
  const paused = await hathi("pause", "--queue", "q", "--until", "2h", "--reason", "import runs");
  expect(paused).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^Paused: queue 'q' until .*: import runs\n$/),
  });
  const [listed] = JSON.parse((await hathi("pauses", "--json")).stdout);
  expect(listed).toMatchObject({
    kind: "queue",
    name: "q",
    reason: "import runs",
    pausedBy: expect.stringContaining("@"),
  });
  for (const command of ["pauses", "queues", "stats"]) {
    expect((await hathi(command)).stdout, command).toContain("queue 'q'");
  }
  expect((await hathi("list")).stdout).toContain("waiting, paused");
  expect((await hathi("resume", "--queue", "q")).stdout).toBe("Resumed.\n");
  expect((await hathi("resume", "--queue", "q")).stderr).toContain("It was not paused.");
  expect(await hathi("pause")).toMatchObject({ code: 1, stderr: expect.stringContaining("Give one of --task") });
  expect(await hathi("pause", "--all", "--until", "2020-01-01")).toMatchObject({ code: 1 });
});
