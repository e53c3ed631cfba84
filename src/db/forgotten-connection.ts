import type { Pool, PoolClient } from "pg";
import { sleep } from "../util/sleep.ts";
import { clearTimeout, setTimeout } from "../util/timers.ts";
import { configOf } from "./direct-client.ts";
import { PatientClient } from "./patient-client.ts";

/** Without an answer for this long, the server is asked about it; again and again. */
const doubtMs = 3_000;
/** How long that may take: while the network is down, it would never end. */
const askMs = 3_000;

/** What pg knows of a connection. */
interface Connected {
  readonly processID?: number | null;
  readonly connection?: { readonly stream?: { readonly bytesRead?: number } };
}

/**
 * Watches for the answer to what was just sent, and tells if there will be none: a firewall has forgotten the connection, say, and the server
 * waits for us while we wait for it. A server that is still at work is left in peace, however long it takes. Gives the way to stop.
 */
export function watchForAnswer(pool: Pool, client: PoolClient, onForgotten: () => void): () => void {
  let isOver = false;
  let timer = setTimeout(() => void look(), doubtMs);
  let bytes = bytesRead(client);
  const look = async (): Promise<void> => {
    const before = bytes;
    bytes = bytesRead(client);
    const isSilent = before === bytes;
    const isForgotten = isSilent && (await isIdleAtServer(pool, client));
    if (isOver) return;
    if (isForgotten && bytesRead(client) === bytes) onForgotten();
    else timer = setTimeout(() => void look(), doubtMs);
  };
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}

/** Where one connection is dead without a word, those that are idle most likely are, too. */
export function dropIdleClients(pool: Pool): void {
  for (let left = pool.idleCount; left > 0; left--) {
    pool.connect().then((client) => client.release(true), ignore);
  }
}

/**
 * True if the server has long done with what we sent, or never got it. The time is for what it has sent and we have not received yet. Through a
 * pooler the process is not known by its id, and the answer is no.
 */
async function isIdleAtServer(pool: Pool, client: PoolClient): Promise<boolean> {
  const { processID } = client as Connected;
  const over = new AbortController();
  const asker = new PatientClient(configOf(pool));
  asker.on("error", ignore);
  const ask = async (): Promise<boolean> => {
    await asker.connect();
    const { rows } = await asker.query(
      `select from pg_catalog.pg_stat_activity
       where pid = $1::integer
         and state in ('idle', 'idle in transaction', 'idle in transaction (aborted)')
         and wait_event = 'ClientRead'
         and state_change < pg_catalog.now() - interval '2 seconds'`,
      [processID],
    );
    return rows.length > 0;
  };
  const isIdle = await Promise.race([ask().catch(() => false), sleep(askMs, over.signal).then(() => false)]);
  over.abort();
  asker.end().catch(ignore);
  return isIdle;
}

function bytesRead(client: PoolClient): number | undefined {
  return (client as Connected).connection?.stream?.bytesRead;
}

function ignore(): void {}
