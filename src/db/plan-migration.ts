import { readdirSync, readFileSync } from "node:fs";
import { judgeSchema, MAX_MIGRATION, missingMigrations } from "./adopt.ts";
import type { SchemaState } from "./schema-state.ts";
import { forSchema, quoteIdentifier } from "./statement.ts";

/** One piece of SQL that brings the schema forward. */
export interface MigrationStep {
  readonly name: string;
  readonly text: string;
}

interface Migration extends MigrationStep {
  readonly id: number;
  /** Workers that do not know it must go first; said by `-- breaking` in the first line. */
  readonly isBreaking: boolean;
}

const baselineId = 1;

let shipped: readonly Migration[] | undefined;

/** Our own migrations, in order: files called `000001-what-it-does.sql`. */
export function shippedMigrations(): readonly Migration[] {
  const folder = new URL("./migrations/", import.meta.url);
  shipped ??= readdirSync(folder)
    .filter((file) => file.endsWith(".sql"))
    .sort()
    .map((file) => readMigration(file, readFileSync(new URL(file, folder), "utf8")));
  return shipped;
}

export function readMigration(file: string, text: string): Migration {
  const isBreaking = /^-- breaking\b/.test(text);
  return { id: Number.parseInt(file, 10), name: file.slice(0, -".sql".length), text, isBreaking };
}

/** The newest migration that this version knows. */
export function newestMigration(): number {
  return shippedMigrations().at(-1)?.id ?? 0;
}

/** The last of the pending migrations that old workers cannot live with, if there may be such workers. */
export function pendingBreak(state: SchemaState, migrations = shippedMigrations()): number | undefined {
  if (!state.objects.has("_hathi_announced_migrations")) return undefined;
  return migrations.findLast(({ id, isBreaking }) => isBreaking && !state.ours?.includes(id))?.id;
}

/** What has to be there before anything can be recorded: the schema and Graphile Worker's ledger. */
export function planBootstrap(state: SchemaState, schema: string): MigrationStep[] {
  const steps: MigrationStep[] = [];
  // An administrator may have made either of them for a role that is not allowed to.
  if (!state.hasSchema) {
    steps.push({ name: "schema", text: `create schema if not exists ${quoteIdentifier(schema)};` });
  }
  if (!state.recorded) {
    steps.push({ name: "ledger", text: forSchema(ledger, schema) });
  } else if (!state.hasBreakingColumn) {
    steps.push({ name: "breaking flag", text: forSchema(breakingFlag, schema) });
  }
  return steps;
}

/** What is missing between the state and this version; nothing when it is up to date. */
export function planMigrations(state: SchemaState, schema: string): MigrationStep[] {
  const done = new Set(state.ours);
  const pending = shippedMigrations().filter(({ id }) => !done.has(id));
  const steps: MigrationStep[] = [];
  if (!state.ours) steps.push({ name: "own ledger", text: ownLedger });
  const missing = missingMigrations(state);
  // An adopted schema stays open to the workers that it was made for, hence no breaking mark even on 19.
  const isFresh = !done.has(baselineId) && judgeSchema(state) === "fresh";
  if (isFresh) steps.push({ name: "announce", text: announce([MAX_MIGRATION]) });
  else if (missing.length > 0) steps.push({ name: "adopt", text: record(missing) + announce(missing) });

  for (const { id, name, text } of pending) {
    const isThere = id === baselineId && !isFresh;
    steps.push({ name, text: `${isThere ? "" : `${text.trim()}\n`}${recordOwn(id, name)}` });
  }
  return steps.map((step) => ({ ...step, text: forSchema(step.text, schema) }));
}

const ledger = `create table graphile_worker.migrations (
  id integer constraint migrations_pkey primary key,
  ts timestamptz not null default now(),
  breaking boolean not null default false
);`;

const breakingFlag = `alter table graphile_worker.migrations add column if not exists breaking boolean not null default false;`;

const ownLedger = `create table graphile_worker._hathi_migrations (
  id integer constraint _hathi_migrations_pkey primary key,
  name text not null,
  ts timestamptz not null default now()
);`;

function record(ids: readonly number[]): string {
  return `insert into graphile_worker.migrations (id, breaking) values ${ids.map((id) => `(${id}, false)`).join(", ")};\n`;
}

function recordOwn(id: number, name: string): string {
  return `insert into graphile_worker._hathi_migrations (id, name) values (${id}, '${name}');`;
}

/** Never announces a breaking change: the channel is shared by all schemas of the database, and their workers would stop. */
function announce(ids: readonly number[]): string {
  return ids
    .map((id) => `select pg_notify('worker:migrate', '{"migrationNumber":${id},"breaking":false}');`)
    .join("\n");
}
