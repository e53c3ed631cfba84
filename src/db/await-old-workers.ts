import type { ClientBase } from "pg";
import { recoveryDefaults } from "../config/recovery-options.ts";
import type { Logger } from "../logger.ts";
import { sleep } from "../util/sleep.ts";
import { monotonicMs } from "../util/timers.ts";
import { ask } from "./statement.ts";
import { announceMigration, findOldWorkers } from "./statements/migration.ts";

export interface AwaitOldWorkersOptions {
  readonly client: ClientBase;
  readonly schema: string;
  /** The id of the migration that they cannot live with. */
  readonly migration: number;
  readonly maxWaitMs: number;
  readonly logger?: Logger | undefined;
}

const lookMs = 250;

/**
 * Asks workers that are too old for a breaking migration to finish what they run and go, and waits until they have gone; true
 * if they did so in time. They hear of it with their next heartbeat; those that send none cannot be asked.
 */
export async function awaitOldWorkers(options: AwaitOldWorkersOptions): Promise<boolean> {
  const { client, schema, migration, maxWaitMs, logger } = options;
  const silenceMs = recoveryDefaults.sweepThreshold;
  await ask(client, announceMigration, { migration }, schema);
  const deadline = monotonicMs() + maxWaitMs;
  for (let isFirst = true; ; isFirst = false) {
    const rows = await ask(client, findOldWorkers, { migration, silenceMs }, schema);
    if (rows.length === 0) return true;
    const names = rows.map(({ id }) => id).join(", ");
    if (isFirst) logger?.info(`Waiting for workers that are too old for the coming schema to finish: ${names}`);
    if (monotonicMs() >= deadline) {
      logger?.warn(`These workers are too old for the coming schema and have not gone in time; going on: ${names}`);
      return false;
    }
    await sleep(Math.min(lookMs, deadline - monotonicMs()));
  }
}
