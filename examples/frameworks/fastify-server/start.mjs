// A server and a worker in one process.
import { makeWorkerUtils, run } from "hathi";
import pg from "pg";
import { openDatabase } from "../../database.mjs";
import { makeServer } from "./server.mjs";

const database = await openDatabase();
const pool = new pg.Pool({ connectionString: database.connectionString });
// An idle connection that breaks must not end the process; the pool opens another.
pool.on("error", (error) => console.error(error.message));
pool.on("connect", (client) => client.on("error", (error) => console.error(error.message)));

const utils = await makeWorkerUtils({ pgPool: pool });
await pool.query(`
  create table if not exists example_orders (
    id int generated always as identity primary key, product text not null, amount int not null check (amount > 0)
  )`);
const runner = await run({
  pgPool: pool,
  noHandleSignals: true,
  taskList: { "ship-order": ({ product, amount }) => console.log(`Shipping ${amount} × ${product}`) },
});

const server = makeServer(pool, utils);
const address = await server.listen({ port: Number(process.env.PORT ?? 3000), host: "127.0.0.1" });
console.log(
  `curl ${address}/orders -H 'content-type: application/json' -d '{"product":"umbrella","amount":2}'\nCtrl-C stops.`,
);

let isStopping = false;
for (const signal of ["SIGINT", "SIGTERM"]) {
  process.on(signal, () => {
    if (!isStopping) void stop();
    isStopping = true;
  });
}

/** First no more requests, then no more jobs, then the database. */
async function stop() {
  await server.close();
  await runner.stop();
  await utils.release();
  await pool.end();
  await database.stop();
}
