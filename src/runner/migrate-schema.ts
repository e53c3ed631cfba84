import type { Database } from "../db/database.ts";
import { type MigrateHooks, migrate } from "../db/migrate.ts";
import type { WorkerPluginContext } from "../hooks.ts";

/** Brings the schema up to date, with the plugins' hooks and middleware in their places. */
export async function migrateSchema(database: Database, ctx: WorkerPluginContext): Promise<void> {
  const hooks = pluginHooks(ctx);
  const { workerSchema: schema, logger, resolvedPreset } = ctx;
  const maxWaitMs = resolvedPreset.worker?.maxMigrationWaitTime;
  await database.withPgClient((client) => migrate({ client, schema, logger, hooks, maxWaitMs }));
}

function pluginHooks(ctx: WorkerPluginContext): MigrateHooks {
  const { hooks, middleware } = ctx;
  return {
    bootstrap: (event, next) => middleware.run("bootstrap", { ctx, ...event }, next),
    migrate: (event, next) => middleware.run("migrate", { ctx, ...event }, next),
    prebootstrap: (event) => hooks.process("prebootstrap", ctx, event),
    postbootstrap: (event) => hooks.process("postbootstrap", ctx, event),
    premigrate: (event) => hooks.process("premigrate", ctx, event),
    postmigrate: (event) => hooks.process("postmigrate", ctx, event),
    migrationError: (event) => hooks.process("migrationError", ctx, event),
  };
}
