import type { Notification } from "pg";
import type { Database } from "../../db/database.ts";
import { fleetChannel, Listener, type ListenOn } from "../../db/listener.ts";
import { isSchemaTooNew } from "../../db/schema-too-new.ts";
import { notify } from "../../db/statements/notify.ts";
import type { Emit } from "../../events.ts";
import type { Logger } from "../../logger.ts";
import type { WorkerPool } from "../../worker.ts";
import type { Outage } from "../settle/outage.ts";

/** How often to poll when no notifications arrive. */
export const deafPollMs = 500;

export interface HearJobsOptions extends ListenOn {
  /** To be waited for before connecting. */
  readonly after: Promise<unknown>;
  readonly database: Database;
  readonly workerPool: WorkerPool;
  readonly emit: Emit;
  readonly logger: Logger;
  readonly outage: Outage;
  /** There may be jobs without a notification. */
  readonly onListening: () => void;
  /** Notifications do not arrive for now. */
  readonly onLost: () => void;
  /** So many jobs were added; `insert` tells one add from another. */
  readonly onJobs: (count: number, insert: unknown) => void;
  /** Another process has scanned for jobs. */
  readonly onFleet: (payload: string | undefined) => void;
  /** Something was paused or resumed. */
  readonly onPauses: () => void;
  /** Limits were changed, or a place in one was freed. */
  readonly onLimits: (haveChanged: boolean) => void;
  /** Running jobs were cancelled; the payload may say which. */
  readonly onCancel: (payload: string | undefined) => void;
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
    notify: (channel, payload) => database.run(notify, { channel, payload }),
    onConnecting: (attempts) => emit("pool:listen:connecting", { workerPool, attempts }),
    onConnected: (client) => emit("pool:listen:success", { workerPool, client }),
    onListening: () => {
      options.outage.well(part);
      options.onListening();
    },
    onNotification: (message, client) => {
      if (message.channel === fleetChannel) return options.onFleet(message.payload);
      emit("pool:listen:notification", { workerPool, message, client });
      hear(message, options);
    },
    onError: (error, client) => {
      emit("pool:listen:error", { workerPool, error, client });
      options.outage.trouble(part, error);
    },
    onReleased: (client) => {
      options.onLost();
      emit("pool:listen:release", { workerPool, client });
    },
    onDeaf: () => {
      options.onDeaf();
      logger.warn(
        "Notifications do not arrive on this connection, as is usual behind a pooler in transaction mode. Jobs are now " +
          `looked for every ${deafPollMs} ms; set 'listenConnectionString' to a direct connection to start them at once.`,
      );
    },
  });
}

function hear({ channel, payload }: Notification, options: HearJobsOptions): void {
  if (channel === "hathi:cancel") {
    options.onCancel(payload);
    return;
  }
  if (channel === "hathi:limits") {
    options.onLimits(payload === "changed");
    return;
  }
  if (channel === "hathi:pauses") {
    options.onPauses();
    return;
  }
  let message: { count?: unknown; r?: unknown; breaking?: unknown } | null | undefined;
  try {
    message = JSON.parse(payload ?? "");
  } catch {
    // Anybody may notify; what cannot be read counts as one job.
  }
  if (channel === "worker:migrate") {
    if (message?.breaking === true) void checkSchema(options);
    return;
  }
  options.onJobs(typeof message?.count === "number" ? message.count : 1, message?.r);
}

/** The channel is shared by all schemas of the database and anyone may notify, so the ledger of this schema decides. */
async function checkSchema({ database, logger, onBreakingMigration }: HearJobsOptions): Promise<void> {
  try {
    const isTooNew = await database.withPgClient.withRetries((client) => isSchemaTooNew(client, database.schema));
    if (isTooNew) onBreakingMigration();
  } catch (error) {
    logger.warn(`A migration was announced, but the schema could not be checked: ${String(error)}`, { error });
  }
}
