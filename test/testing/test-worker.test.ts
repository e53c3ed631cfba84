import { expect, inject, onTestFinished, test } from "vitest";
import { openTestQueue, type TestQueue } from "../../src/testing/index.ts";
import { until } from "../support/wait.ts";

async function openQueue(): Promise<TestQueue> {
  const queue = await openTestQueue({ connectionString: inject("postgres").url });
  onTestFinished(() => queue.drop());
  return queue;
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

test("a test worker and what it started end with their queue, even if they are frozen", async () => {
  const queue = await openQueue();
  const wait = "setInterval(() => undefined, 1000)";
  const script = `console.log('child', require("child_process").spawn(process.execPath, ["-e", "${wait}"]).pid); ${wait}`;
  const worker = await queue.startWorker({ command: [process.execPath, "-e", script] });
  const pids = [worker.pid, Number((await worker.says(/child (\d+)/))[1])];
  await worker.freeze();
  expect(pids.map(isAlive)).toEqual([true, true]);
  await queue.drop();
  await until(() => !pids.some(isAlive), { what: "both processes are gone" });
});

test("a worker that ends too early, or is no program, is named together with what it said", async () => {
  const queue = await openQueue();
  const job = await queue.addJob("task", {});
  const broken = await queue.startWorker({ command: [process.execPath, "-e", "throw new Error('no such thing')"] });
  await expect(broken.claimed(job)).rejects.toThrow(/ended before job \d+ was claimed. It said:.*no such thing/s);
  await expect(queue.startWorker({ command: ["no-such-program"] })).rejects.toThrow("ENOENT");
});

test("jobs of other processes stay theirs", async () => {
  const queue = await openQueue();
  const { id } = await queue.addJob("task", {});
  await queue.utils.withPgClient((client) =>
    client.query(`
      select ${queue.schema}.worker_heartbeat('pool-other', '{"pid": ${process.pid}}');
      update ${queue.schema}._private_jobs set locked_at = now(), locked_by = 'pool-other'`),
  );
  const worker = await queue.startWorker({ command: [process.execPath, "-e", ""] });
  await worker.kill();
  const [job] = await queue.utils.withPgClient(
    async (client) => (await client.query(`select locked_by from ${queue.schema}._private_jobs where id = ${id}`)).rows,
  );
  expect(job).toEqual({ locked_by: "pool-other" });
});
