import type { Database } from "../../db/database.ts";
import type { Job } from "../../job.ts";
import type { TaskList } from "../../task.ts";
import type { PoolHooks } from "../../worker/pool-hooks.ts";
import type { Worker } from "../../worker.ts";
import type { CompiledSharedOptions } from "../compile.ts";

/** Plugins' hooks and middleware around a pool's workers and its end. */
export function poolHooks(
  { ctx, hooks, middleware }: CompiledSharedOptions<object>,
  database: Database,
  tasks: TaskList,
  onStarted: () => void,
): PoolHooks {
  const { withPgClient } = database;
  let hasStarted = false;
  const stopped = new WeakSet<Worker>();
  return {
    aroundGracefulShutdown: async (workerPool, message, shutDown) => {
      await middleware.run("poolGracefulShutdown", { ctx, workerPool, message }, () => shutDown());
    },
    aroundForcefulShutdown: async (workerPool, message, shutDown) =>
      (await middleware.run("poolForcefulShutdown", { ctx, workerPool, message }, () => shutDown())) as {
        forceFailedJobs: readonly Job[];
      },
    onWorkerStart: async (worker, flags) => {
      const event = { worker, flagsToSkip: flags, tasks, withPgClient };
      await hooks.process("startWorker", event);
      if (!hasStarted) onStarted();
      hasStarted = true;
      return event.flagsToSkip;
    },
    onWorkerExit: (workerPool, worker, replaceWithNewWorker) => {
      middleware.runSync("poolWorkerPrematureExit", { ctx, workerPool, worker, replaceWithNewWorker }, () => {
        throw new Error(`Worker ${worker.workerId} exited unexpectedly`);
      });
    },
    onWorkerStop: async (worker) => {
      if (stopped.has(worker)) return;
      stopped.add(worker);
      await hooks.process("stopWorker", { worker, withPgClient });
    },
  };
}
