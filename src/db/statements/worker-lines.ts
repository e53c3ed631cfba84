import { shortPatienceMs, statement } from "../statement.ts";

/** Holds a worker's lock for as long as this connection lives; waits while somebody is looking whether it is held. */
export const lockLine = statement<{ id: string }, object>({
  name: "lock_line",
  values: ({ id }) => [id],
  text: "select pg_advisory_lock(graphile_worker._hathi_line_key($1::text))",
});

export const unlockLine = statement<{ id: string }, object>({
  name: "unlock_line",
  values: ({ id }) => [id],
  text: "select pg_advisory_unlock(graphile_worker._hathi_line_key($1::text))",
});

/** Says that the lock is held, so that its absence means something. */
export const announceLine = statement<{ id: string }, object>({
  name: "announce_line",
  values: ({ id }) => [id],
  text: `
    insert into graphile_worker._hathi_worker_lines (id)
    select id from graphile_worker._private_workers where id = $1::text
    on conflict (id) do update set lost_at = null`,
});

/** From here on the absence of the lock means nothing. */
export const withdrawLine = statement<{ id: string }, object>({
  name: "withdraw_line",
  values: ({ id }) => [id],
  text: "delete from graphile_worker._hathi_worker_lines where id = $1::text",
});

/** Notes which lines are lost; gives when the first of them is to count as dead. Null: none is lost. */
export const watchLines = statement<{ graceMs: number }, { readonly dead_in_ms: number | null }>({
  name: "watch_lines",
  patienceMs: shortPatienceMs,
  values: ({ graceMs }) => [graceMs],
  text: "select graphile_worker._hathi_watch_lines($1::double precision * interval '1 millisecond') as dead_in_ms",
});
