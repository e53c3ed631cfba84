import type { PoolClient } from "pg";
import { ConfigError, SchemaTooNewError, SchemaTooOldError, toError } from "../errors.ts";
import type { MigrationEvent } from "../hooks.ts";
import type { Logger } from "../logger.ts";
import type { PromiseOrDirect } from "../task.ts";
import { sleep } from "../util/sleep.ts";
import { checkSchemaIsKnown, checkServer, judgeSchema } from "./adopt.ts";
import { awaitOldWorkers } from "./await-old-workers.ts";
import {
  type MigrationStep,
  pendingBreak,
  planBootstrap,
  planMigrations,
  shippedMigrations,
} from "./plan-migration.ts";
import { examineSchema, readSchemaState, type SchemaState } from "./schema-state.ts";
import { isClash, isRepeatable } from "./sqlstate.ts";

/** Where plugins may step in; they run outside of our transactions. */
export interface MigrateHooks {
  /** Wraps the making of the schema and its ledger; only called when one of them is missing. */
  bootstrap?: (event: MigrationEvent, next: () => Promise<void>) => PromiseOrDirect<void>;
  /** Wraps everything else; always called. */
  migrate?: (event: MigrationEvent, next: () => Promise<void>) => PromiseOrDirect<void>;
  prebootstrap?: (event: MigrationEvent) => PromiseOrDirect<void>;
  postbootstrap?: (event: MigrationEvent) => PromiseOrDirect<void>;
  premigrate?: (event: MigrationEvent) => PromiseOrDirect<void>;
  postmigrate?: (event: MigrationEvent) => PromiseOrDirect<void>;
  migrationError?: (event: MigrationEvent & { error: Error }) => PromiseOrDirect<void>;
}

export interface MigrateOptions {
  readonly client: PoolClient;
  readonly schema: string;
  readonly logger?: Logger;
  readonly hooks?: MigrateHooks;
  /** How long to wait for workers that are too old for a breaking migration. */
  readonly maxWaitMs?: number | undefined;
}

const maxTries = 10;
const defaultMaxWaitMs = 4 * 3_600_000;

/** Installs, upgrades or adopts the schema; any number of processes may do so at the same moment. */
export async function migrate(options: MigrateOptions): Promise<void> {
  for (let seen: number | undefined; ; ) {
    try {
      await migrateOnce(options);
      return;
    } catch (error) {
      if (!(error instanceof SchemaTooOldError || error instanceof ConfigError)) throw error;
      // What looks too old or incomplete may be an original half-way through its own migrations: as long as it gets on, it is
      // waited for.
      const latest = (await readSchemaState(options.client, options.schema)).recorded?.at(-1) ?? 0;
      if (latest === seen) throw error;
      seen = latest;
      await sleep(500);
    }
  }
}

async function migrateOnce({
  client,
  schema,
  logger,
  hooks = {},
  maxWaitMs = defaultMaxWaitMs,
}: MigrateOptions): Promise<void> {
  const state = await readSchemaState(client, schema);
  check(state, logger);
  const event: MigrationEvent = { client, postgresVersion: state.postgresVersion, scratchpad: {} };

  if (planBootstrap(state, schema).length > 0) {
    await wrap(hooks.bootstrap, event, async () => {
      await hooks.prebootstrap?.(event);
      await runPlan(client, schema, planBootstrap);
      await hooks.postbootstrap?.(event);
    });
  }
  await wrap(hooks.migrate, event, async () => {
    await hooks.premigrate?.(event);
    if (planMigrations(state, schema).length > 0) {
      const migration = pendingBreak(state);
      try {
        if (migration !== undefined) await awaitOldWorkers({ client, schema, migration, maxWaitMs, logger });
        await runPlan(client, schema, planMigrations);
      } catch (error) {
        await hooks.migrationError?.({ ...event, error: toError(error) });
        throw error;
      }
    }
    await hooks.postmigrate?.(event);
  });
}

/** The SQL that `migrate` would run now, as a script for an administrator; empty when there is nothing to do. */
export async function describeMigration({ client, schema, logger }: Omit<MigrateOptions, "hooks">): Promise<string> {
  const state = await readSchemaState(client, schema);
  check(state, logger);
  const steps = [...planBootstrap(state, schema), ...planMigrations(state, schema)];
  if (steps.length === 0) return "";
  return ["begin;", ...steps.map(({ name, text }) => `-- ${name}\n${text}`), "commit;", ""].join("\n\n");
}

/** Stops before anything is written when the server or the schema cannot be worked with. */
function check(state: SchemaState, logger: Logger | undefined): void {
  checkServer(state);
  try {
    const warning = checkSchemaIsKnown(state);
    if (warning) logger?.warn(warning);
  } catch (error) {
    // What Graphile Worker's users let their process managers look for: do not restart, upgrade.
    if (error instanceof SchemaTooNewError) process.exitCode = 57;
    throw error;
  }
  if (!state.ours?.length) judgeSchema(state);
  const ownLatest = state.ours?.at(-1) ?? 0;
  if (ownLatest > (shippedMigrations().at(-1)?.id ?? 0)) {
    logger?.warn(
      `A newer version of this library has been here (its migration ${ownLatest}); please upgrade when you can.`,
    );
  }
}

async function wrap(
  middleware: MigrateHooks["migrate"],
  event: MigrationEvent,
  next: () => Promise<void>,
): Promise<void> {
  if (middleware) await middleware(event, next);
  else await next();
}

/** Plans and runs under a lock of the schema, so that of many processes one writes and the others find it done. */
async function runPlan(
  client: PoolClient,
  schema: string,
  plan: (state: SchemaState, schema: string) => MigrationStep[],
): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await client.query("begin");
      // Ends with the transaction: the only kind of lock that is safe behind a transaction pooler.
      await client.query("select pg_advisory_xact_lock(hashtextextended($1, 0))", [`hathi migrate ${schema}`]);
      for (const { text } of plan(await examineSchema(client, schema), schema)) await client.query(text);
      await client.query("commit");
      return;
    } catch (error) {
      await client.query("rollback").catch(() => undefined);
      // Somebody who does not know our lock, an original worker for example, is at it too.
      if (!(isClash(error) || isRepeatable(error)) || tries === maxTries) throw error;
      await sleep(100 * tries);
    }
  }
}
