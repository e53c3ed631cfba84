import type { ClientBase, PoolClient, QueryConfig } from "pg";
import type { Logger } from "../logger.ts";
import { sleep } from "../util/sleep.ts";
import { clearTimeout, setTimeout } from "../util/timers.ts";
import { requestCancel } from "./cancel-request.ts";
import { directBackend } from "./direct-client.ts";
import { foreverMs } from "./query-within.ts";
import { retryLocked } from "./retry-locked.ts";
import type { IndexStatement } from "./split-indexes.ts";
import { isClash, isRepeatable } from "./sqlstate.ts";
import { ask, quoteIdentifier } from "./statement.ts";
import { endBuildTurn, type FoundIndex, findIndex, takeBuildTurn } from "./statements/migration.ts";
import { type Connect, watchBuild } from "./watch-build.ts";

export interface BuildIndexOptions {
  readonly client: PoolClient;
  readonly schema: string;
  readonly index: IndexStatement;
  readonly logger?: Logger | undefined;
  /** Lends a second connection, to see how the build gets on. */
  readonly connect?: Connect | undefined;
  /** Ends the build, or the waiting for another process that builds. */
  readonly signal?: AbortSignal | undefined;
}

const pollMs = 500;
/** A request to cancel is lost if it arrives before the statement does, so it is repeated. */
const cancelEveryMs = 1_000;

/**
 * Builds an index beside readers and writers, and returns when it is valid or the signal aborts. What a crashed build left is dropped first. Of several
 * processes one builds; the others ask now and then, and hold no snapshot meanwhile, since a build waits for older snapshots.
 */
export async function buildIndex(options: BuildIndexOptions): Promise<void> {
  const { client, schema, index, logger, signal } = options;
  const pid = await directBackend(client);
  for (let hasTold = false; !signal?.aborted; ) {
    const { isValid, builder } = await readIndex(client, schema, index);
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
      await sleep(pollMs * (0.5 + Math.random()), signal);
    }
  }
}

/**
 * Two builds that start at the same moment would wait for each other until PostgreSQL ends one. Behind a pooler, which could
 * lend the lock's session to others, that is how it is decided.
 */
async function takeTurn(client: ClientBase, schema: string, pid: number | undefined): Promise<boolean> {
  if (pid === undefined) return true;
  const [row] = await ask(client, takeBuildTurn, { name: turn(schema) });
  return row!.isOurs;
}

async function endTurn(client: ClientBase, schema: string, pid: number | undefined): Promise<void> {
  if (pid === undefined) return;
  // A lost connection has ended its turn already.
  await ask(client, endBuildTurn, { name: turn(schema) }).catch(() => undefined);
}

function turn(schema: string): string {
  return `hathi index ${schema}`;
}

async function readIndex(client: ClientBase, schema: string, { name, table }: IndexStatement): Promise<FoundIndex> {
  const [row] = await ask(client, findIndex, { schema, name, table });
  return row!;
}

/** A build that lost a race for the name, or was ended because of a deadlock, is no failure: the catalogue is asked again. */
async function build(options: BuildIndexOptions, pid: number | undefined): Promise<void> {
  const { client, index, logger, connect, signal } = options;
  logger?.info(`Building index ${index.name}; jobs are added and claimed meanwhile.`);
  const restore = await prepareSession(client, pid);
  const watch = watchBuild({ client, pid, index, logger, connect });
  const keepBuilding = signal && cancelOnAbort(client, signal);
  try {
    await client.query({ text: index.text, query_timeout: foreverMs } as QueryConfig);
  } catch (error) {
    if (!(isClash(error) || isRepeatable(error))) throw error;
  } finally {
    keepBuilding?.();
    watch.stop();
    await restore();
  }
}

/** In the protocol's own way, since behind a pooler another process may build than the one that answered before. Gives what undoes it. */
function cancelOnAbort(client: PoolClient, signal: AbortSignal): () => void {
  let timer: NodeJS.Timeout | undefined;
  const cancel = (): void => {
    void requestCancel(client, cancelEveryMs);
    timer = setTimeout(cancel, cancelEveryMs);
  };
  if (signal.aborted) cancel();
  else signal.addEventListener("abort", cancel);
  return () => {
    signal.removeEventListener("abort", cancel);
    clearTimeout(timer);
  };
}

/** Only after no build of this table is under way any more, and only if the index is still invalid then. */
function dropInvalid({ client, schema, index, logger, signal }: BuildIndexOptions): Promise<void> {
  logger?.info(`Dropping index ${index.name}, which an interrupted build left invalid.`);
  return retryLocked({ client, schema, logger, what: `dropping index ${index.name}` }, async () => {
    signal?.throwIfAborted();
    const table = `${quoteIdentifier(schema)}.${quoteIdentifier(index.table)}`;
    await client.query(`lock table ${table} in share update exclusive mode`);
    const { isValid } = await readIndex(client, schema, index);
    if (isValid === false) await client.query(`drop index ${quoteIdentifier(schema)}.${quoteIdentifier(index.name)}`);
  });
}

/**
 * A build waits as long as others' transactions take, and a timeout would leave it invalid; its condition must mean PostgreSQL's own
 * operators (`safeSearchPath`, for a statement that cannot be part of a transaction). Gives what undoes it.
 */
async function prepareSession(client: ClientBase, pid: number | undefined): Promise<() => Promise<void>> {
  const { rows } = await client.query<{ name: string; setting: string }>(
    `select name, setting from pg_catalog.pg_settings
     where name in ('statement_timeout', 'transaction_timeout', 'lock_timeout', 'search_path')`,
  );
  if (pid === undefined) {
    for (const { name, setting } of rows) if (name === "search_path") refuseHostilePath(setting);
    return () => Promise.resolve();
  }
  const set = (name: string, setting: string): Promise<unknown> =>
    client.query("select pg_catalog.set_config($1::text, $2::text, false)", [name, setting]);
  for (const { name } of rows) await set(name, name === "search_path" ? "pg_catalog, pg_temp" : "0");
  return async () => {
    for (const { name, setting } of rows) await set(name, setting).catch(() => undefined);
  };
}

/**
 * Through a pooler nothing can be set: it would stay behind with a server process that others go on using. What our indexes use is found in
 * pg_catalog, which comes first unless a path says otherwise.
 */
function refuseHostilePath(path: string): void {
  if (path.split(",").findIndex((name) => /^\s*"?pg_catalog"?\s*$/.test(name)) <= 0) return;
  throw new Error(
    `The search_path '${path}' has other schemas before pg_catalog, which is not safe to build an index with through a pooler. ` +
      "Migrate over a direct connection to PostgreSQL, or take pg_catalog out of the role's search_path.",
  );
}
