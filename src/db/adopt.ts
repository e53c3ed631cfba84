import { ConfigError, SchemaTooNewError, SchemaTooOldError } from "../errors.ts";
import type { SchemaState } from "./schema-state.ts";

/** The newest id of Graphile Worker's ledger that we know (0.18), and those that older workers cannot live with. */
export const MAX_MIGRATION = 20;
export const BREAKING_MIGRATIONS: readonly number[] = [1, 3, 11, 13, 14, 16, 19];

const oldestAdoptable = 18;

const maxRustMigration = 22;

const tables = ["_private_jobs", "_private_tasks", "_private_job_queues", "_private_known_crontabs", "jobs"];

/** The releases of Graphile Worker by the newest id each of them leaves in the ledger. */
const releaseById: ReadonlyArray<readonly [newest: number, release: string]> = [
  [1, "0.2"],
  [2, "0.3"],
  [3, "0.4"],
  [4, "0.5 or 0.6"],
  [5, "0.8"],
  [8, "0.9"],
  [9, "0.12"],
  [10, "0.13"],
  [14, "0.14 or 0.15"],
  [17, "0.16 (not completely installed)"],
];

const oldestPostgres = 14;

/** Throws on a server that is too old for our functions. */
export function checkServer({ postgresVersion }: Pick<SchemaState, "postgresVersion">): void {
  const major = Math.floor(postgresVersion / 10_000);
  if (major < oldestPostgres) {
    throw new ConfigError(
      `PostgreSQL ${oldestPostgres} or newer is needed, but the server is ${major}; please upgrade it.`,
    );
  }
}

/** Says whether the tables have to be made or are there to be adopted; throws when neither is possible. */
export function judgeSchema(state: SchemaState, schema: string): "fresh" | "adoptable" {
  const latest = state.recorded?.at(-1) ?? 0;
  const missing = tables.filter((name) => !state.objects.has(name));
  if (latest === 0 && missing.length === tables.length) return "fresh";
  if (latest >= oldestAdoptable && missing.length === 0) return "adoptable";
  if (latest > 0 && latest < oldestAdoptable) throw tooOld(latest, schema);
  throw new ConfigError(
    `The schema is neither empty nor complete: its ledger is at revision ${latest}, but ${missing.join(", ") || "nothing"} ` +
      "is missing. Restore it from a backup, or choose another schema.",
  );
}

function tooOld(latest: number, schema: string): SchemaTooOldError {
  const release = releaseById.find(([newest]) => latest <= newest)?.[1] ?? "an early release";
  const command = detour(schema);
  return new SchemaTooOldError(
    `The schema is at revision ${latest} (Graphile Worker ${release}); it can be adopted from revision ${oldestAdoptable} on. ` +
      `Stop its workers, run this once with DATABASE_URL set to the database, and try again: ${command}`,
    command,
  );
}

/** The command that brings a schema of before 0.16 to where it can be adopted, for a POSIX shell. */
function detour(schema: string): string {
  const command = "npx graphile-worker@0.16.6 --schema-only";
  return schema === "graphile_worker" ? command : `${command} --schema '${schema.replaceAll("'", "'\\''")}'`;
}

/** Throws when a newer version changed the schema in a breaking way; returns a warning when the change is harmless. */
export function checkSchemaIsKnown(state: SchemaState): string | undefined {
  const known = isOfRustPort(state) ? maxRustMigration : MAX_MIGRATION;
  const latestBreaking = state.breaking.at(-1) ?? 0;
  if (latestBreaking > known) throw new SchemaTooNewError(latestBreaking, MAX_MIGRATION);
  const latest = state.recorded?.at(-1) ?? 0;
  if (latest <= known) return undefined;
  return (
    `The database is using Graphile Worker schema revision ${latest}; this version understands revisions up to ` +
    `${known}. The change is marked as compatible, so we carry on; please upgrade when you can.`
  );
}

/**
 * The Rust port's ids 19 to 22 mean other things than Graphile Worker's, so its objects tell. Recovery is ours as well by now,
 * but only the Rust port has it where 19 is no breaking change.
 */
function isOfRustPort({ objects, breaking }: SchemaState): boolean {
  return objects.has("_private_return_jobs") || (objects.has("recover_dead_worker_jobs") && !breaking.includes(19));
}

/** Ids to record, so that no Graphile Worker up to 0.18 lays its own functions over ours when it starts. */
export function missingMigrations(state: SchemaState): number[] {
  const latest = state.recorded?.at(-1) ?? 0;
  return Array.from({ length: Math.max(0, MAX_MIGRATION - latest) }, (_, index) => latest + 1 + index);
}
