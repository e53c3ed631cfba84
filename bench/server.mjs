import { readFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";

const settings = {
  shared_buffers: "512MB",
  // A checkpoint in the middle of a measurement would be charged to whoever is being measured.
  max_wal_size: "8GB",
  checkpoint_timeout: "30min",
  max_connections: 200,
  shared_preload_libraries: "pg_stat_statements",
};

const shownSettings = [
  "server_version",
  "fsync",
  "synchronous_commit",
  "full_page_writes",
  "wal_sync_method",
  "wal_level",
  "shared_buffers",
  "max_wal_size",
  "checkpoint_timeout",
  "max_connections",
  "autovacuum",
  "jit",
];

/** The durable server that everything is measured on. */
export async function startServer({ dataDir, databaseUrl }) {
  const server = databaseUrl ? { connectionString: databaseUrl, stop: () => undefined } : await startOwn(dataDir);
  const admin = new pg.Client({ connectionString: server.connectionString });
  // A server that is shut down under us says so to every connection.
  admin.on("error", () => undefined);
  await admin.connect();
  const { rows } = await admin.query("select name, current_setting(name) as value from unnest($1::text[]) as name", [
    shownSettings,
  ]);
  let stopping;
  return {
    admin,
    connectionString: server.connectionString,
    settings: Object.fromEntries(rows.map(({ name, value }) => [name, value])),
    postmasterPid: server.clusterDir && readPid(server.clusterDir),
    hasStatements: await enableStatements(admin),
    /** Two runs on one server would drop each other's databases and share one machine. */
    async claim() {
      const { rows } = await admin.query("select pg_try_advisory_lock(hashtext('hathi-bench')) as ours");
      if (!rows[0].ours)
        throw new Error("Another benchmark is running on this server: wait for it, or give --data-dir.");
    },
    urlOf(database) {
      const url = new URL(server.connectionString);
      url.pathname = `/${database}`;
      return url.href;
    },
    stop() {
      stopping ??= admin.end().then(() => server.stop());
      return stopping;
    },
  };
}

async function startOwn(dataDir) {
  const { startEmbedded } = await import("../packages/embedded/dist/index.js");
  return startEmbedded({ dataDir, profile: "durable", settings });
}

function readPid(clusterDir) {
  return Number(readFileSync(join(clusterDir, "postmaster.pid"), "utf8").split("\n")[0]);
}

async function enableStatements(admin) {
  try {
    await admin.query("create extension if not exists pg_stat_statements");
    await admin.query("select 1 from pg_stat_statements limit 1");
    return true;
  } catch {
    return false;
  }
}
