import { readFile } from "node:fs/promises";
import type { Task } from "graphile-worker";
import { leaveLine } from "./effects.js";

/** Watches what a worker does, and makes tasks of text files. */
export const WatchPlugin: GraphileConfig.Plugin = {
  name: "WatchPlugin",
  version: "1.0.0",
  worker: {
    middleware: {
      init(next, { ctx }) {
        leaveLine(`middleware init ${ctx.workerSchema}`);
        return next();
      },
      async bootstrap(next, { ctx, postgresVersion }) {
        leaveLine(`middleware bootstrap ${ctx.escapedWorkerSchema} ${postgresVersion >= 120_000}`);
        return await next();
      },
      async migrate(next, { client }) {
        const { rows } = await client.query<{ one: number }>("select 1 as one");
        leaveLine(`middleware migrate ${rows[0]?.one}`);
        await next();
        leaveLine("middleware migrate is through");
      },
      poolGracefulShutdown(next, { message }) {
        leaveLine(`middleware poolGracefulShutdown ${message}`);
        return next();
      },
    },
    hooks: {
      init(ctx) {
        leaveLine(`hook init ${ctx.maxMigrationNumber >= 20} ${ctx.breakingMigrationNumbers.includes(11)}`);
      },
      prebootstrap(ctx) {
        leaveLine(`hook prebootstrap ${ctx.workerSchema}`);
      },
      postbootstrap() {
        leaveLine("hook postbootstrap");
      },
      premigrate() {
        leaveLine("hook premigrate");
      },
      postmigrate: {
        before: ["last"],
        callback(ctx) {
          leaveLine(`hook postmigrate ${typeof ctx.logger.info}`);
        },
      },
      async loadTaskFromFiles(_ctx, event) {
        const file = event.fileDetailsList.find(({ extension }) => extension === ".txt");
        if (!file || event.handler) return;
        leaveLine(
          `hook loadTaskFromFiles ${event.taskIdentifier} ${file.baseName}${file.extension} ${file.stats.isFile()}`,
        );
        const text = await readFile(file.fullPath, "utf8");
        const handler: Task = (payload) =>
          leaveLine(`task ${event.taskIdentifier}: ${text.trim()} ${JSON.stringify(payload)}`);
        event.handler = handler;
      },
      async startWorker(_ctx, { worker, flagsToSkip, tasks, withPgClient }) {
        const { rows } = await withPgClient((client) => client.query<{ two: number }>("select 2 as two"));
        const names = Object.keys(tasks).length;
        leaveLine(`hook startWorker ${/^worker-/.test(worker.workerId)} ${flagsToSkip} ${names} ${rows[0]?.two}`);
      },
      stopWorker(_ctx, { worker }) {
        leaveLine(`hook stopWorker ${typeof worker.workerId}`);
      },
    },
  },
};
