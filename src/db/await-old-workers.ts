import type { ClientBase } from "pg";
import type { Logger } from "../logger.ts";
import { sleep } from "../util/sleep.ts";
import { monotonicMs } from "../util/timers.ts";
import { forSchema } from "./statement.ts";

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
  await client.query(forSchema(announceMigration, schema), [migration]);
  const deadline = monotonicMs() + maxWaitMs;
  for (let isFirst = true; ; isFirst = false) {
    const { rows } = await client.query<{ id: string }>(forSchema(findOldWorkers, schema), [migration]);
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

const announceMigration = `
insert into graphile_worker._hathi_announced_migrations (id) values ($1) on conflict do nothing`;

// One that has been silent for long is not waited for: it is dead, or will find out when it wakes.
const findOldWorkers = `
select id
from graphile_worker._private_workers
where last_heartbeat_at > now() - interval '5 minutes'
  and jsonb_typeof(metadata -> 'migration') = 'number'
  and (metadata ->> 'migration')::numeric < $1
order by id`;
