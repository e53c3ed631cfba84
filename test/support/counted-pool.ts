import type pg from "pg";
import { testPool } from "./database.ts";

export interface CountedPool {
  readonly pool: pg.Pool;
  /** The texts of all statements that were sent through it. */
  readonly sent: string[];
}

/** A pool that remembers what was sent through it. */
export function countedPool(url: string, max?: number): CountedPool {
  const pool = testPool(url, max);
  const sent: string[] = [];
  pool.on("connect", (client) => {
    const query = client.query.bind(client) as (...args: unknown[]) => unknown;
    client.query = ((...args: unknown[]) => {
      const [config] = args;
      sent.push(typeof config === "string" ? config : String((config as { text?: string }).text));
      return query(...args);
    }) as typeof client.query;
  });
  return { pool, sent };
}
