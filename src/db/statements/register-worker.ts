import { shortPatienceMs, statement } from "../statement.ts";

/** Makes a worker known to those who look for dead ones. */
export const registerWorker = statement<{ id: string; metadata: object }, object>({
  name: "register_worker",
  patienceMs: shortPatienceMs,
  values: ({ id, metadata }) => [id, JSON.stringify(metadata)],
  text: "select from graphile_worker.worker_heartbeat(worker_id => $1::text, metadata => $2::json)",
});

/** Takes a worker out of the books; what it still holds then belongs to nobody. */
export const deregisterWorker = statement<{ id: string }, object>({
  name: "deregister_worker",
  patienceMs: shortPatienceMs,
  values: ({ id }) => [id],
  text: "select from graphile_worker.worker_deregister(worker_id => $1::text)",
});
