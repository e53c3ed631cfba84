import type { ClientBase, PoolClient, QueryConfig } from "pg";
import type { Logger } from "../logger.ts";
import { sleep } from "../util/sleep.ts";
import { directBackend } from "./direct-client.ts";
import { foreverMs } from "./query-within.ts";
import { retryLocked } from "./retry-locked.ts";
import type { IndexStatement } from "./split-indexes.ts";
import { isClash, isRepeatable } from "./sqlstate.ts";
import { quoteIdentifier } from "./statement.ts";
import { type Connect, watchBuild } from "./watch-build.ts";

export interface BuildIndexOptions {
  readonly client: PoolClient;
  readonly schema: string;
  readonly index: IndexStatement;
  readonly logger?: Logger | undefined;
  /** Lends a second connection, to see how the build gets on. */
  readonly connect?: Connect | undefined;
}

const pollMs = 500;

/**
 * Builds an index beside readers and writers, and returns when it is valid. What a crashed build left is dropped first. Of several
 * processes one builds; the others ask now and then, and hold no snapshot meanwhile, since a build waits for older snapshots.
 */
export async function buildIndex(options: BuildIndexOptions): Promise<void> {
  const { client, schema, index, logger } = options;
  const pid = await directBackend(client);
  for (let hasTold = false; ; ) {
    const { isValid, builder } = await findIndex(client, schema, index);
    if (isValid) return;
    if (builder === null && (await takeTurn(client, schema, pid))) {
      try {
        if (isValid === false) await dropInvalid(options);
        else await build(options, pid);
      } finally {
        await endTurn(client, schema, pid);
      }
    } else {
      if (builder !== null && !hasTold) {
        logger?.info(`Waiting for index ${index.name}, which process ${builder} is building.`);
        hasTold = true;
      }
      await sleep(pollMs * (0.5 + Math.random()));
    }
  }
}

/**
 * Two builds that start at the same moment would wait for each other until PostgreSQL ends one. Behind a pooler, which could
 * lend the lock's session to others, that is how it is decided.
 */
async function takeTurn(client: ClientBase, schema: string, pid: number | undefined): Promise<boolean> {
  if (pid === undefined) return true;
  const { rows } = await client.query<{ isOurs: boolean }>(
    'select pg_try_advisory_lock(hashtextextended($1, 0)) as "isOurs"',
    [turn(schema)],
  );
  return rows[0]!.isOurs;
}

async function endTurn(client: ClientBase, schema: string, pid: number | undefined): Promise<void> {
  if (pid === undefined) return;
  // A lost connection has ended its turn already.
  await client.query("select pg_advisory_unlock(hashtextextended($1, 0))", [turn(schema)]).catch(() => undefined);
}

function turn(schema: string): string {
  return `hathi index ${schema}`;
}

async function findIndex(
  client: ClientBase,
  schema: string,
  { name, table }: IndexStatement,
): Promise<{ isValid: boolean | null; builder: number | null }> {
  const { rows } = await client.query(findIndexText, [schema, name, table]);
  return rows[0];
}

/** A build that lost a race for the name, or was ended because of a deadlock, is no failure: the catalogue is asked again. */
async function build({ client, index, logger, connect }: BuildIndexOptions, pid: number | undefined): Promise<void> {
  logger?.info(`Building index ${index.name}; jobs are added and claimed meanwhile.`);
  const restore = await prepareSession(client);
  const watch = watchBuild({ client, pid, index, logger, connect });
  try {
    await client.query({ text: index.text, query_timeout: foreverMs } as QueryConfig);
  } catch (error) {
    if (!(isClash(error) || isRepeatable(error))) throw error;
  } finally {
    watch.stop();
    await restore();
  }
}

/** Only after no build of this table is under way any more, and only if the index is still invalid then. */
function dropInvalid({ client, schema, index, logger }: BuildIndexOptions): Promise<void> {
  logger?.info(`Dropping index ${index.name}, which an interrupted build left invalid.`);
  return retryLocked({ client, schema, logger, what: `dropping index ${index.name}` }, async () => {
    const table = `${quoteIdentifier(schema)}.${quoteIdentifier(index.table)}`;
    await client.query(`lock table ${table} in share update exclusive mode`);
    const { isValid } = await findIndex(client, schema, index);
    if (isValid === false) await client.query(`drop index ${quoteIdentifier(schema)}.${quoteIdentifier(index.name)}`);
  });
}

/**
 * A build waits as long as others' transactions take, and a timeout would leave it invalid; its condition must mean PostgreSQL's own
 * operators (`safeSearchPath`, for a statement that cannot be part of a transaction). Gives what undoes it.
 */
async function prepareSession(client: ClientBase): Promise<() => Promise<void>> {
  const { rows } = await client.query<{ name: string; setting: string }>(
    "select name, setting from pg_catalog.pg_settings where name in ('statement_timeout', 'lock_timeout', 'search_path')",
  );
  const set = (name: string, setting: string): Promise<unknown> =>
    client.query("select pg_catalog.set_config($1::text, $2::text, false)", [name, setting]);
  for (const { name } of rows) await set(name, name === "search_path" ? "pg_catalog, pg_temp" : "0");
  return async () => {
    for (const { name, setting } of rows) await set(name, setting).catch(() => undefined);
  };
}

// A build in progress holds this lock on its table from beginning to end, and is listed with the builds.
const findIndexText = `
select
  (
    select index.indisvalid
    from pg_index as index
    join pg_class as class on class.oid = index.indexrelid
    join pg_namespace as namespace on namespace.oid = class.relnamespace
    where namespace.nspname = $1::text and class.relname = $2::text
  ) as "isValid",
  (
    select lock.pid
    from pg_locks as lock
    join pg_stat_progress_create_index as progress on progress.pid = lock.pid
    where lock.relation = to_regclass(format('%I.%I', $1::text, $3::text))
      and lock.database = (select oid from pg_database where datname = current_database())
      and lock.mode = 'ShareUpdateExclusiveLock' and lock.granted and lock.pid <> pg_backend_pid()
    limit 1
  ) as builder`;
