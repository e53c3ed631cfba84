import type { Pool as PgPool } from "pg";
import type { Settings } from "../config/settings.ts";
import { connectDirectly } from "../db/direct-client.ts";
import type { ListenOn } from "../db/listener.ts";
import { takeSpareClient } from "../db/pooled-client.ts";

/** The connection to listen on; undefined if there is none to spare, or if it was ruled out. */
export function findListenOn(
  {
    useNotifications,
    listenConnectionString,
    connectionString,
  }: Pick<Settings, "useNotifications" | "listenConnectionString" | "connectionString">,
  pgPool: PgPool | undefined,
  ownsPool: boolean,
): ListenOn | undefined {
  if (!useNotifications) return undefined;
  if (listenConnectionString) {
    return {
      connect: () => connectDirectly(listenConnectionString),
      isLent: false,
      source: listenConnectionString,
    };
  }
  // The only connection of a pool is needed for work.
  if (!pgPool || pgPool.options.max === 1) return undefined;
  // In a transaction that was left open, no notification would arrive.
  const source = (ownsPool && connectionString) || pgPool;
  return { connect: () => takeSpareClient(pgPool), isLent: !ownsPool, source };
}
