import fastify from "fastify";

const body = {
  type: "object",
  required: ["product", "amount"],
  properties: { product: { type: "string" }, amount: { type: "integer" } },
};

/** The HTTP side: it needs a pool for its rows and the utils for its jobs. */
export function makeServer(pool, utils) {
  const server = fastify();
  server.post("/orders", { schema: { body } }, async ({ body: { product, amount } }, reply) => {
    const order = await inTransaction(pool, async (client) => {
      const jobs = utils.withTransaction(client);
      // Added before the order: were the transaction rolled back, it would be gone with it.
      await jobs.addJob("ship-order", { product, amount }, { queueName: `product:${product}` });
      const { rows } = await client.query("insert into example_orders (product, amount) values ($1, $2) returning id", [
        product,
        amount,
      ]);
      return rows[0];
    });
    return reply.code(201).send(order);
  });
  return server;
}

async function inTransaction(pool, callback) {
  const client = await pool.connect();
  try {
    await client.query("begin");
    const result = await callback(client);
    await client.query("commit");
    return result;
  } catch (error) {
    await client.query("rollback");
    throw error;
  } finally {
    client.release();
  }
}
