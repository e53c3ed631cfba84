import { sleep } from "./clock.mjs";
import { serverCpuMs } from "./cpu.mjs";

/** Reads what the server has spent; two readings give the cost of what happened in between. */
export async function readServer(server) {
  const { rows } = await server.admin.query("select pg_current_wal_insert_lsn() - '0/0' as wal");
  return { walBytes: Number(rows[0].wal), pgCpuMs: serverCpuMs(server.postmasterPid) };
}

/** Commits of a database so far. Backends report late, the last of it when they end: call it before connecting or after. */
export async function readCommits(server, place) {
  for (let tries = 0; tries < 200 && (await countBackends(server, place)) > 0; tries++) await sleep(10);
  return readReportedCommits(server, place);
}

/** Those that backends have reported: within a second while they work, and ten seconds after they became idle. */
export async function readReportedCommits(server, place) {
  const { rows } = await server.admin.query("select xact_commit from pg_stat_database where datname = $1", [
    place.database,
  ]);
  return Number(rows[0].xact_commit);
}

async function countBackends(server, place) {
  const { rows } = await server.admin.query(
    `select count(*)::int as count from pg_stat_activity
     where datname = $1 and backend_type = 'client backend' and application_name <> 'bench'`,
    [place.database],
  );
  return rows[0].count;
}

export async function resetStatements(server) {
  if (server.hasStatements) await server.admin.query("select pg_stat_statements_reset()");
}

/** Statements that clients sent to a database since the reset, ours excluded. */
export async function readStatements(server, place) {
  if (!server.hasStatements) return undefined;
  const { rows } = await server.admin.query(
    `select query, calls::float8 as calls, total_exec_time + total_plan_time as ms
     from pg_stat_statements join pg_database on pg_database.oid = dbid
     where datname = $1 and toplevel and query not like '%/* bench */%'
       -- Checks of deferred foreign keys are the server's own.
       and query not like 'SELECT % FROM ONLY % FOR KEY SHARE OF x'`,
    [place.database],
  );
  return rows;
}

export function countCalls(statements, pattern = /./) {
  return statements?.filter(({ query }) => pattern.test(query)).reduce((sum, { calls }) => sum + calls, 0);
}
