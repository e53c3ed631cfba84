import { randomUUID } from "node:crypto";
import { clearTimeout, setTimeout } from "../util/timers.ts";
import type { Database } from "./database.ts";

/** True if a message sent on one connection is heard on another within the time. */
export async function probeNotifications(db: Database, withinMs: number): Promise<boolean> {
  const channel = `hathi_probe_${randomUUID().replaceAll("-", "")}`;
  return db.withPgClient(async (listener) => {
    let timer: NodeJS.Timeout | undefined;
    const heard = new Promise<boolean>((resolve) => {
      timer = setTimeout(() => resolve(false), withinMs);
      listener.on("notification", (message) => {
        if (message.channel === channel) resolve(true);
      });
    });
    try {
      await listener.query(`listen "${channel}"`);
      await db.withPgClient(
        async (sender) => void (await sender.query("select pg_catalog.pg_notify($1::text, ''::text)", [channel])),
      );
      return await heard;
    } finally {
      clearTimeout(timer);
      listener.removeAllListeners("notification");
      await listener.query(`unlisten "${channel}"`).catch(() => undefined);
    }
  });
}

/** True if one of our connections keeps its server process, and with it what was prepared there. */
export async function probePreparedStatements(db: Database): Promise<boolean> {
  const name = `hathi_probe_${randomUUID().slice(0, 8)}`;
  return db.withPgClient(async (client) => {
    try {
      const pids = new Set<number>();
      for (let time = 0; time < 5; time++) {
        const { rows } = await client.query<{ pid: number }>({ name, text: "select pg_backend_pid() as pid" });
        pids.add(rows[0]!.pid);
      }
      return pids.size === 1;
    } catch {
      return false;
    }
  });
}
