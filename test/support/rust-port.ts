import type { TestDatabase } from "./database.ts";

/** Brings a schema at revision 18 to where the Rust port leads it: its ids 19 to 22 mean other things than the original's. */
export async function applyRustPort(database: TestDatabase, upTo: 19 | 20 | 21 | 22): Promise<void> {
  const ids = Array.from({ length: upTo - 18 }, (_, index) => index + 19);
  if (upTo >= 20) await database.query(recovery);
  if (upTo >= 22) await database.query(retirements);
  await database.query("insert into graphile_worker.migrations (id, breaking) select unnest($1::int[]), false", [ids]);
}

const recovery = `
  create table graphile_worker._private_workers (
    id text primary key,
    last_heartbeat_at timestamptz not null,
    started_at timestamptz not null default now(),
    metadata jsonb
  );
  create index on graphile_worker._private_workers (last_heartbeat_at);
  create function graphile_worker.worker_heartbeat(worker_id text, metadata json default null) returns void language sql as $$
    insert into graphile_worker._private_workers (id, last_heartbeat_at, metadata) values (worker_id, now(), metadata::jsonb)
    on conflict (id) do update set last_heartbeat_at = now()
  $$;
  create function graphile_worker.worker_deregister(worker_id text) returns void language sql as $$
    delete from graphile_worker._private_workers where id = worker_id
  $$;
  create function graphile_worker.list_stale_workers(sweep_threshold interval) returns table (worker_id text) language sql as $$
    select id from graphile_worker._private_workers where last_heartbeat_at < now() - sweep_threshold
  $$;
  create function graphile_worker.recover_dead_worker_jobs(worker_ids text[], recovery_delay interval default '0')
  returns integer language sql as $$ select 0 $$;`;

const retirements = `
  create table graphile_worker._private_job_retirements (
    id bigint primary key references graphile_worker._private_jobs (id) on delete cascade
  );
  create function graphile_worker._private_return_jobs(
    worker_id text, ids bigint[], delay_ms bigint, error text, update_metadata boolean
  ) returns integer language sql as $$ select 0 $$;`;
