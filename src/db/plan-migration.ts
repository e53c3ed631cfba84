import { judgeSchema, MAX_MIGRATION, missingMigrations } from "./adopt.ts";
import { readMigrationFiles } from "./migration-files.ts";
import type { SchemaState } from "./schema-state.ts";
import { type IndexStatement, splitIndexes } from "./split-indexes.ts";
import { forSchema, quoteIdentifier } from "./statement.ts";

/** Something that brings the schema forward and is recorded when it is done, so that a crash loses at most one step. */
export interface MigrationStep {
  readonly name: string;
  /** Built one by one before the transaction. */
  readonly indexes: readonly IndexStatement[];
  /** Run in one transaction. */
  readonly text: string;
}

interface Migration {
  readonly id: number;
  readonly name: string;
  readonly text: string;
  /** Workers that do not know it must go first; said by `-- breaking` in the first line. */
  readonly isBreaking: boolean;
}

const baselineId = 1;

let shipped: readonly Migration[] | undefined;

/** Our own migrations, in order: files called `000001-what-it-does.sql`. */
export function shippedMigrations(): readonly Migration[] {
  shipped ??= readMigrationFiles().map(({ name, text }) => readMigration(name, text));
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
  const texts: string[] = [];
  // An administrator may have made either of them for a role that is not allowed to.
  if (!state.hasSchema) texts.push(`create schema if not exists ${quoteIdentifier(schema)};`);
  if (!state.recorded) texts.push(ledger);
  else if (!state.hasBreakingColumn) texts.push(breakingFlag);
  return texts.length > 0 ? [transaction("schema and ledger", schema, texts)] : [];
}

/** What is missing between the state and this version; nothing when it is up to date. */
export function planMigrations(
  state: SchemaState,
  schema: string,
  migrations: readonly Migration[] = shippedMigrations(),
): MigrationStep[] {
  const done = new Set(state.ours);
  const pending = migrations.filter(({ id }) => !done.has(id));
  const preparation = state.ours ? [] : [ownLedger];

  if (!done.has(baselineId) && judgeSchema(state, schema) === "fresh") {
    const texts = pending.map(({ id, name, text }) => `-- ${name}\n${text.trim()}\n${recordOwn(id, name)}`);
    return [transaction("install", schema, [...preparation, announce([MAX_MIGRATION]), ...texts])];
  }

  const missing = missingMigrations(state);
  // An adopted schema stays open to the workers that it was made for, hence no breaking mark even on 19.
  if (missing.length > 0) preparation.push(record(missing) + announce(missing));
  const baseline = pending.find(({ id }) => id === baselineId);
  if (baseline) preparation.push(recordOwn(baseline.id, baseline.name));
  const changes = pending.filter((migration) => migration !== baseline);
  const steps = changes.map(({ id, name, text }) => {
    const split = splitIndexes(text, (table) => state.objects.has(table));
    const indexes = split.indexes.map((index) => ({ ...index, text: forSchema(index.text, schema) }));
    return { ...transaction(name, schema, [split.rest.trim(), recordOwn(id, name)]), indexes };
  });
  return preparation.length > 0 ? [transaction("adopt", schema, preparation), ...steps] : steps;
}

function transaction(name: string, schema: string, texts: readonly string[]): MigrationStep {
  return { name, indexes: [], text: forSchema(texts.join("\n\n"), schema) };
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
