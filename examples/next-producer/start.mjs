// The producer and its worker with one command. Node's HTTP server stands in for Next, and calls the route as Next does.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { openDatabase } from "../database.mjs";
import { POST } from "./app/api/sign-up/route.mjs";
import { openJobs } from "./jobs.mjs";

const database = await openDatabase();
process.env.DATABASE_URL = database.connectionString;
const { pool, utils } = await openJobs();

const worker = spawn(process.execPath, [fileURLToPath(new URL("worker.mjs", import.meta.url))], { stdio: "inherit" });
const workerEnded = once(worker, "exit");

const server = createServer((incoming, outgoing) => void answer(incoming, outgoing));
server.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => {
  const { port } = server.address();
  console.log(`producer ${process.pid}: curl http://127.0.0.1:${port}/api/sign-up -d '{"email":"ada@example.com"}'`);
});

let isStopping = false;
for (const signal of ["SIGINT", "SIGTERM"]) {
  process.on(signal, () => {
    if (!isStopping) void stop();
    isStopping = true;
  });
}

async function answer(incoming, outgoing) {
  const request = new Request(`http://localhost${incoming.url}`, { method: "POST", body: await text(incoming) });
  const response = await POST(request).catch((error) => Response.json({ error: error.message }, { status: 500 }));
  outgoing.writeHead(response.status, { "content-type": "application/json" }).end(await response.text());
}

async function stop() {
  server.close();
  worker.kill("SIGTERM");
  await workerEnded;
  await utils.release();
  await pool.end();
  await database.stop();
}
