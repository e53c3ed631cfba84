import pg from "pg";
import { serve } from "./serve.mjs";

// Nothing but `pg` and two statements on graphile-worker's tables: what no framework on top of them can beat by much.

const claim = `
  with due as materialized (
    select id from graphile_worker._private_jobs
    where is_available and run_at <= now() and task_id = any ($2::int[])
    order by priority, run_at limit $1 for update skip locked
  )
  update graphile_worker._private_jobs as job
  set attempts = job.attempts + 1, locked_by = 'raw', locked_at = now()
  from due where job.id = due.id
  returning job.id, job.payload`;
const settle = "delete from graphile_worker._private_jobs where id = any ($1::bigint[])";

serve({
  async startWorker({ place, settings, tasks, handler }) {
    const clients = await Promise.all(Array.from({ length: settings.connections }, () => connect(place)));
    const { rows } = await clients[0].query(
      "select id from graphile_worker._private_tasks where identifier = any ($1)",
      [tasks],
    );
    const taskIds = rows.map((row) => row.id);
    const drain = settings.listen ? drainOnNotify : drainUntilStopped;
    return drain(clients, taskIds, settings.batchSize, handler);
  },

  async openProducer({ place }) {
    const pool = new pg.Pool({ connectionString: place.connectionString });
    const { rows } = await pool.query("select id from graphile_worker._private_tasks where identifier = 'job'");
    return {
      add: (_task, payload) =>
        pool.query({
          name: "add",
          text: `with added as (
              insert into graphile_worker._private_jobs (task_id, payload) values ($1, $2) returning id
            ) select pg_notify('raw:insert', '') from added`,
          values: [rows[0].id, payload],
        }),
      close: () => pool.end(),
    };
  },
});

async function connect({ connectionString }) {
  const client = new pg.Client({ connectionString });
  await client.connect();
  return client;
}

/** Claims and settles one batch. True if there was one. */
async function step(client, taskIds, batchSize, handler) {
  const { rows } = await client.query({ name: "claim", text: claim, values: [batchSize, taskIds] });
  if (rows.length === 0) return false;
  for (const { payload } of rows) handler(payload);
  await client.query({ name: "settle", text: settle, values: [rows.map((row) => row.id)] });
  return true;
}

function drainUntilStopped(clients, taskIds, batchSize, handler) {
  const lanes = clients.map(async (client) => {
    while (await step(client, taskIds, batchSize, handler));
    await client.end();
  });
  return { stop: () => Promise.all(lanes) };
}

async function drainOnNotify([listener, client], taskIds, batchSize, handler) {
  let working = Promise.resolve();
  const work = async () => {
    while (await step(client, taskIds, batchSize, handler));
  };
  listener.on("notification", () => {
    working = working.then(work);
  });
  await listener.query('listen "raw:insert"');
  return {
    async stop() {
      await listener.end();
      await working;
      await client.end();
    },
  };
}
