// Starts a server in a process of its own, tells what happened in one line, then does what stdin says.
import { createInterface } from "node:readline";

const { account, options } = JSON.parse(process.argv[2]);
if (account) {
  process.setgroups([account.gid]);
  process.setgid(account.gid);
  process.setuid(account.uid);
}
const tell = (fact) => process.stdout.write(`${JSON.stringify(fact)}\n`);

// Loaded only now, so that every file is read as the account.
const { default: pg } = await import("pg");
const { startEmbedded } = await import("./dist/index.js");

let server;
const ask = async (text) => {
  const client = new pg.Client({ connectionString: server.connectionString });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
};

process.on("SIGINT", () => {
  if (server) void ask("select 1 as one").then((rows) => tell({ interrupted: true, rows }));
  else tell({ interrupted: true });
});

try {
  server = await startEmbedded(options);
  tell(server);
} catch (error) {
  tell({ error: { name: error.name, code: error.code, message: error.message } });
}
for await (const line of createInterface({ input: process.stdin })) {
  if (line === "stop") tell({ stopped: await server.stop() });
}
process.exit();
