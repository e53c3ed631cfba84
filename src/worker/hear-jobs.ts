import type { Notification } from "pg";
import type { Database } from "../db/database.ts";
import { Listener, type ListenOn } from "../db/listener.ts";
import type { Emit } from "../events.ts";
import type { Logger } from "../logger.ts";
import type { WorkerPool } from "../worker.ts";
import type { Outage } from "./outage.ts";

/** How often to look when nobody tells us of new jobs. */
export const deafPollMs = 500;

export interface HearJobsOptions extends ListenOn {
  /** To be waited for before connecting. */
  readonly after: Promise<unknown>;
  readonly database: Database;
  readonly workerPool: WorkerPool;
  readonly emit: Emit;
  readonly logger: Logger;
  readonly outage: Outage;
  /** There may be jobs that nobody will tell us of. */
  readonly onListening: () => void;
  /** Notifications do not arrive, and will not. */
  readonly onDeaf: () => void;
  /** The schema was changed in a breaking way under us. */
  readonly onBreakingMigration: () => void;
}

/** Wakes a pool when the database announces jobs, and tells the world how the listening goes. */
export function hearJobs(options: HearJobsOptions): Listener {
  const { database, workerPool, emit, logger } = options;
  const part = {};
  return new Listener({
    connect: options.connect,
    isLent: options.isLent,
    after: options.after,
    notify: (channel, payload) =>
      database.withPgClient((client) => client.query("select pg_notify($1, $2)", [channel, payload])),
    onConnecting: (attempts) => emit("pool:listen:connecting", { workerPool, attempts }),
    onConnected: (client) => emit("pool:listen:success", { workerPool, client }),
    onListening: () => {
      options.outage.well(part);
      options.onListening();
    },
    onNotification: (message, client) => {
      emit("pool:listen:notification", { workerPool, message, client });
      hear(message, options);
    },
    onError: (error) => {
      emit("pool:listen:error", { workerPool, error });
      options.outage.trouble(part, error);
    },
    onReleased: (client) => emit("pool:listen:release", { workerPool, client }),
    onDeaf: () => {
      options.onDeaf();
      logger.warn(
        "Notifications do not arrive on this connection, as is usual behind a pooler in transaction mode. Jobs are now " +
          `looked for every ${deafPollMs} ms; set 'listenConnectionString' to a direct connection to start them at once.`,
      );
    },
  });
}

function hear({ channel, payload }: Notification, { workerPool, onBreakingMigration }: HearJobsOptions): void {
  let message: { count?: unknown; breaking?: unknown } | null | undefined;
  try {
    message = JSON.parse(payload ?? "");
  } catch {
    // Anybody may notify; what cannot be read counts as one job.
  }
  if (channel === "worker:migrate") {
    if (message?.breaking === true) onBreakingMigration();
    return;
  }
  workerPool.nudge(typeof message?.count === "number" ? message.count : 1);
}
