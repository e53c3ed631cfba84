import { expect, test } from "vitest";
import type { Job } from "../../../src/job.ts";
import { Buffer } from "../../../src/worker/claim/buffer.ts";

let nextId = 1;
const job = (queueId: number | null = null, task = "task"): Job =>
  ({ id: String(nextId++), job_queue_id: queueId, task_identifier: task }) as Job;

function filled(jobs: readonly Job[], claimedAt = 1): Buffer {
  const buffer = new Buffer();
  for (const each of jobs) buffer.add(each, claimedAt);
  return buffer;
}

test("of a queue one job is out at a time, and the next is ready before jobs that were claimed later", () => {
  const [first, second, third, free] = [job(1), job(1), job(1), job()];
  const buffer = filled([first, second, third, free]);
  expect([buffer.size, buffer.ready]).toEqual([4, 2]);
  expect(buffer.take()).toBe(first);
  expect(buffer.ended(first)).toBeNull();
  expect(buffer.take()).toBe(second);
  expect(buffer.take()).toBe(free);
  expect(buffer.take()).toBeUndefined();
  expect(buffer.ended(free)).toBeNull();
  expect(buffer.ended(second)).toBeNull();
  expect(buffer.take()).toBe(third);
  // Nothing of it is held any more, so it can be released.
  expect(buffer.ended(third)).toBe(1);
  expect(buffer.size).toBe(0);
});

test("it knows since when the oldest job waits that could start, and the oldest behind another of its queue", () => {
  const buffer = new Buffer();
  expect([buffer.readySince, buffer.waitingSince]).toEqual([Infinity, Infinity]);
  const head = job(1);
  buffer.add(head, 10);
  buffer.add(job(1), 10);
  buffer.add(job(), 20);
  expect([buffer.readySince, buffer.waitingSince]).toEqual([10, 10]);
  buffer.take();
  expect([buffer.readySince, buffer.waitingSince]).toEqual([20, 10]);
  buffer.ended(head);
  expect([buffer.readySince, buffer.waitingSince]).toEqual([10, Infinity]);
});

test("what is taken out by age takes its queue's later jobs along, and leaves what has started", () => {
  const [old, behind, young] = [job(1), job(1), job()];
  const buffer = filled([old, behind]);
  buffer.add(young, 5);
  const taken = buffer.takeClaimedBefore({ ready: 1, waiting: 0 });
  expect(taken).toEqual({ jobs: [old, behind], queueIds: [1] });
  expect(buffer.jobs()).toEqual([young]);

  const [running, waiting] = [job(2), job(2)];
  buffer.add(running, 6);
  buffer.add(waiting, 6);
  expect(buffer.take()).toBe(young);
  expect(buffer.take()).toBe(running);
  // The queue stays the running job's.
  expect(buffer.drain()).toEqual({ jobs: [waiting], queueIds: [] });
  expect(buffer.ended(running)).toBe(2);
});

test("jobs are taken out by what they are, with all of their queue, and the others keep order and age", () => {
  const [a, b, c] = [job(null, "paused"), job(), job(null, "paused")];
  const [head, behind] = [job(1), job(1, "paused")];
  const [other, otherBehind] = [job(2), job(2)];
  const buffer = filled([a, b, head, behind]);
  for (const each of [c, other, otherBehind]) buffer.add(each, 9);
  const taken = buffer.takeWhere(({ task_identifier }) => task_identifier === "paused");
  expect(taken).toEqual({ jobs: [a, head, behind, c], queueIds: [1] });
  expect([buffer.size, buffer.ready, buffer.readySince]).toEqual([3, 2, 1]);
  expect(buffer.take()).toBe(b);
  expect(buffer.readySince).toBe(9);
  expect(buffer.take()).toBe(other);
  expect(buffer.takeWhere(({ job_queue_id }) => job_queue_id === 2)).toEqual({ jobs: [otherBehind], queueIds: [] });
  expect(buffer.ended(other)).toBe(2);
  expect(buffer.takeWhere(() => true)).toEqual({ jobs: [], queueIds: [] });
});
