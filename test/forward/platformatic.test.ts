import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { builtLibrary } from "../support/built-library.ts";
import { freshDatabase } from "../support/database.ts";
import { startProcess } from "../support/process.ts";
import { until } from "../support/wait.ts";
import { brokers } from "./brokers.ts";
import { isInstalled, startKafka } from "./servers.ts";

const count = 500;

/** `HATHI_NODE_22=/path/to/node` where the tests themselves run on an older one. */
const node = [process.env.HATHI_NODE_22, process.execPath].find((path) => path && isNewEnough(path));

function isNewEnough(path: string): boolean {
  const [major = 0, minor = 0] = execFileSync(path, ["--version"], { encoding: "utf8" })
    .slice(1)
    .split(".")
    .map(Number);
  return major > 22 ? major > 24 || (major === 24 && minor >= 6) : major === 22 && minor >= 22;
}

test("@platformatic/kafka gets each job once, with its headers and its queue as the key", {
  timeout: 60_000,
}, async ({ skip }) => {
  skip(!node, "@platformatic/kafka needs Node 22.22 or 24.6; name one in HATHI_NODE_22");
  skip(!isInstalled("kcat"), "kcat is not installed");
  const db = await freshDatabase();
  const { port } = await startKafka("mail");
  await db.query(
    `select graphile_worker.add_job('mail/welcome', json_build_object('n', nth), queue_name => case when nth % 50 = 0 then 'q' end)
     from generate_series(1, $1::integer) as nth`,
    [count],
  );
  const options = { connectionString: db.url, library: builtLibrary(), broker: "platformatic", port, maxInFlight: 100 };
  const script = fileURLToPath(new URL("worker.mjs", import.meta.url));
  const worker = startProcess(script, [JSON.stringify(options)], {}, node);
  await worker.says(/^ready$/m);
  await until(async () => (await db.jobs()).length === 0, {
    withinMs: 40_000,
    what: `all are sent: ${worker.output()}`,
  });
  const received = await brokers.find(({ name }) => name === "kafka")!.receive(port);
  expect(received.map(({ body }) => body.n).sort((a, b) => a - b)).toEqual(
    Array.from({ length: count }, (_, n) => n + 1),
  );
  for (const { id, key, body, headers } of received) {
    expect(headers).toMatchObject({ "hathi-id": id, "hathi-task": "mail/welcome", "hathi-attempt": "1" });
    expect(key).toBe(body.n % 50 === 0 ? "q" : "");
  }
  const inQueue = received.filter(({ key }) => key === "q").map(({ body }) => body.n);
  expect(inQueue).toEqual(inQueue.toSorted((a, b) => a - b));
});
