import { isolate, publishMade } from "./batch.ts";
import type { ForwardMessage } from "./message.ts";
import { type PublishResult, resultOf, type Target } from "./target.ts";

/** The part of a `Queue` of `bullmq` that is used. */
export interface BullQueue {
  addBulk(jobs: { name: string; data: never; opts?: object }[]): Promise<unknown>;
}

export interface BullOptions {
  readonly queue: BullQueue;
  /** More options for each job, such as `attempts` or `removeOnComplete`. */
  readonly jobOptions?: object | ((message: ForwardMessage) => object);
  /** True: the job's priority is passed on, shifted by 32769 because BullMQ's begin at 1. BullMQ runs jobs without one first. */
  readonly priorities?: boolean;
}

/** BullMQ: a batch is added in one call. A job that is still kept under the same id is not added again. The headers are in `opts.hathi`. */
export function bullmq({ queue, jobOptions = {}, priorities = false }: BullOptions): Target {
  const optionsOf = typeof jobOptions === "function" ? jobOptions : () => jobOptions;
  return {
    name: "BullMQ",
    publish: (batch) =>
      publishMade(
        batch,
        (message) => ({
          name: message.task,
          data: message.payload as never,
          opts: {
            ...(priorities && { priority: message.priority + 32_769 }),
            ...optionsOf(message),
            jobId: message.id,
            hathi: message.headers,
          },
        }),
        (jobs) => isolate(jobs, (some) => queue.addBulk([...some]), judge),
      ),
  };
}

/** BullMQ checks the options of each job before it sends any, and throws a plain error; everything else is of Redis, or of the way to it. */
function judge(error: unknown): PublishResult {
  const { name, message = "", code } = error as { name?: unknown; message?: string; code?: unknown };
  const isPlain = name === "Error" && code === undefined && !/connection|closed|timed out/i.test(message);
  return resultOf(isPlain ? "retry" : "absent", error);
}
