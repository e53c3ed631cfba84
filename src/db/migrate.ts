import type { PoolClient } from "pg";
import { ConfigError, SchemaTooNewError, SchemaTooOldError, toError } from "../errors.ts";
import type { MigrationEvent } from "../hooks/plugin.ts";
import type { Logger } from "../logger.ts";
import type { PromiseOrDirect } from "../task.ts";
import { sleep } from "../util/sleep.ts";
import { checkSchemaIsKnown, checkServer, judgeSchema } from "./adopt.ts";
import { awaitOldWorkers } from "./await-old-workers.ts";
import { buildIndex } from "./build-index.ts";
import {
  type MigrationStep,
  pendingBreak,
  planBootstrap,
  planMigrations,
  shippedMigrations,
} from "./plan-migration.ts";
import { retryLocked } from "./retry-locked.ts";
import { examineSchema, readSchemaState, type SchemaState } from "./schema-state.ts";
import { safeSearchPath } from "./statement.ts";
import { inTransaction } from "./transaction.ts";
import type { Connect } from "./watch-build.ts";

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
  /** Lends a second connection, to log how the building of an index gets on. */
  readonly connect?: Connect | undefined;
  /** Default: those of this version. */
  readonly migrations?: ReturnType<typeof shippedMigrations>;
}

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

async function migrateOnce(options: MigrateOptions): Promise<void> {
  const { client, schema, logger, hooks = {}, maxWaitMs = defaultMaxWaitMs } = options;
  const migrations = options.migrations ?? shippedMigrations();
  const plan: Plan = (state) => planMigrations(state, schema, migrations);
  const state = await readSchemaState(client, schema);
  check(state, schema, logger);
  const event: MigrationEvent = { client, postgresVersion: state.postgresVersion, scratchpad: {} };

  if (planBootstrap(state, schema).length > 0) {
    await wrap(hooks.bootstrap, event, async () => {
      await hooks.prebootstrap?.(event);
      await carryOut(options, (current) => planBootstrap(current, schema));
      await hooks.postbootstrap?.(event);
    });
  }
  await wrap(hooks.migrate, event, async () => {
    await hooks.premigrate?.(event);
    if (plan(state).length > 0) {
      const migration = pendingBreak(state, migrations);
      try {
        if (migration !== undefined) await awaitOldWorkers({ client, schema, migration, maxWaitMs, logger });
        await carryOut(options, plan);
      } catch (error) {
        await hooks.migrationError?.({ ...event, error: toError(error) });
        throw error;
      }
    }
    await hooks.postmigrate?.(event);
  });
}

/** The SQL that `migrate` would run now, as a script for an administrator; empty when there is nothing to do. */
export async function describeMigration({
  client,
  schema,
  logger,
}: Pick<MigrateOptions, "client" | "schema" | "logger">): Promise<string> {
  const state = await readSchemaState(client, schema);
  check(state, schema, logger);
  const steps = [...planBootstrap(state, schema), ...planMigrations(state, schema)];
  const texts = steps.flatMap(({ name, indexes, text }) => [
    `-- ${name}`,
    ...indexes.map((index) => index.text),
    `begin;\n\n${safeSearchPath}\n\n${text}\n\ncommit;\n`,
  ]);
  return texts.join("\n\n");
}

/** Stops before anything is written when the server or the schema cannot be worked with. */
function check(state: SchemaState, schema: string, logger: Logger | undefined): void {
  checkServer(state);
  try {
    const warning = checkSchemaIsKnown(state);
    if (warning) logger?.warn(warning);
  } catch (error) {
    // What Graphile Worker's users let their process managers look for: do not restart, upgrade.
    if (error instanceof SchemaTooNewError) process.exitCode = 57;
    throw error;
  }
  if (!state.ours?.length) judgeSchema(state, schema);
  const ownLatest = state.ours?.at(-1) ?? 0;
  if (ownLatest > (shippedMigrations().at(-1)?.id ?? 0)) {
    logger?.warn(
      `A newer version of this library has migrated this schema (migration ${ownLatest}); please upgrade when you can.`,
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

type Plan = (state: SchemaState) => MigrationStep[];

/** Takes one step after the other. Each is planned again before it is taken, since another process may have taken it. */
async function carryOut(options: MigrateOptions, plan: Plan): Promise<void> {
  const { client, schema, logger } = options;
  for (let done = 0; ; done++) {
    const [step, ...others] = plan(await examineSafely(client, schema));
    if (!step) return;
    for (const index of step.indexes) await buildIndex({ ...options, index });
    let isOurs = false;
    await retryLocked({ client, schema, logger, what: `migration ${step.name}` }, async () => {
      const [current] = plan(await examineSchema(client, schema));
      isOurs = current?.name === step.name;
      if (isOurs) await client.query(step.text);
    });
    if (isOurs && done + others.length > 0) logger?.info(`Migration ${step.name} is done, ${others.length} to go.`);
  }
}

/** Hooks may have left any search path behind. */
function examineSafely(client: PoolClient, schema: string): Promise<SchemaState> {
  return inTransaction(client, async () => {
    await client.query(safeSearchPath);
    return examineSchema(client, schema);
  });
}
