import { clientDatabase, type Database } from "../db/database.ts";
import { type MigrateHooks, migrate } from "../db/migrate.ts";
import type { WorkerPluginContext } from "../plugin-context.ts";
import { reportSettings } from "./report-settings.ts";

/** Brings the schema up to date, with the plugins' hooks and middleware in their places. */
export async function migrateSchema(database: Database, ctx: WorkerPluginContext): Promise<void> {
  const hooks = pluginHooks(ctx);
  const { workerSchema: schema, logger, resolvedPreset } = ctx;
  const maxWaitMs = resolvedPreset.worker?.maxMigrationWaitTime;
  const connect = database.withPgClient;
  await database.withPgClient(async (client) => {
    await reportSettings(clientDatabase(client, { schema, preparedStatements: false }), logger);
    await migrate({ client, schema, logger, hooks, maxWaitMs, connect });
  });
}

function pluginHooks(ctx: WorkerPluginContext): MigrateHooks {
  const { hooks, middleware } = ctx;
  // The same object for all of them, so that what one adds to the event the next one sees.
  const full = <Event extends object>(event: Event): Event & { ctx: WorkerPluginContext } =>
    Object.assign(event, { ctx });
  return {
    bootstrap: (event, next) => middleware.run("bootstrap", full(event), next),
    migrate: (event, next) => middleware.run("migrate", full(event), next),
    prebootstrap: (event) => hooks.process("prebootstrap", full(event)),
    postbootstrap: (event) => hooks.process("postbootstrap", full(event)),
    premigrate: (event) => hooks.process("premigrate", full(event)),
    postmigrate: (event) => hooks.process("postmigrate", full(event)),
    migrationError: (event) => hooks.process("migrationError", full(event)),
  };
}
