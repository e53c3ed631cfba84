import { fileURLToPath } from "node:url";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ForwardMessage, PublishResult, Target } from "../../src/forward/index.ts";
import * as adapters from "../../src/forward/index.ts";
import { sleep } from "../../src/util/sleep.ts";
import { builtLibrary } from "../support/built-library.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { dice } from "../support/dice.ts";
import { startProcess, type TestProcess } from "../support/process.ts";
import { until } from "../support/wait.ts";
import { brokers, type Received, tasks } from "./brokers.ts";
import { isInstalled, type Server } from "./servers.ts";
import { connectTarget } from "./targets.mjs";

/** `HATHI_FORWARD_JOBS=100000` for the large run. */
const count = Number(process.env.HATHI_FORWARD_JOBS ?? 1_000);
const seed = Number(process.env.HATHI_SEED ?? Date.now() % 1_000_000);
const isLarge = count > 10_000;

/**
 * Every so many jobs are in one of so many queues. The jobs of a queue go one after the other, and a kill keeps its queues locked for a second or
 * two: a large run has more queues, so that its end is not a matter of hours.
 */
const queues = isLarge ? { every: 50, count: 40 } : { every: 20, count: 7 };
const queueOf = (n: number): string | undefined =>
  n % queues.every === 0 ? `queue ${(n / queues.every) % queues.count}` : undefined;

async function startForwarder(db: TestDatabase, broker: string, port: number): Promise<TestProcess> {
  const recovery = {
    heartbeatInterval: 300,
    sweepInterval: 500,
    sweepThreshold: isLarge ? 4_000 : 2_500,
    recoveryDelay: 0,
    crashGrace: 1_000,
  };
  const options = {
    connectionString: db.url,
    library: builtLibrary(),
    broker,
    port,
    pollInterval: 200,
    recovery,
    maxInFlight: isLarge ? 500 : 50,
  };
  const child = startProcess(fileURLToPath(new URL("worker.mjs", import.meta.url)), [JSON.stringify(options)]);
  await child.says(/^ready$/m);
  return child;
}

/** Adds jobs with the payloads { n: from + 1 } to { n: from + amount }, some of them in queues. */
const addJobs = (db: TestDatabase, from: number, amount: number) =>
  db.query<{ id: string; n: string }>(
    `select id, payload ->> 'n' as n from graphile_worker.add_jobs(array(
       select (($3::text[])[1 + nth % 2], json_build_object('n', nth), case when nth % $4::integer = 0 then 'queue ' || nth / $4::integer % $5::integer end,
         null, 100, null, 0, null)::graphile_worker.job_spec
       from generate_series($1::integer + 1, $1::integer + $2::integer) as nth))`,
    [from, amount, tasks, queues.every, queues.count],
  );

async function holdsJobs(db: TestDatabase, { pid }: TestProcess): Promise<boolean> {
  const rows = await db.query(
    `select from graphile_worker._private_jobs where locked_by in
       (select id from graphile_worker._private_workers where (metadata ->> 'pid')::integer = $1) limit 1`,
    [pid],
  );
  return rows.length > 0;
}

/** What each message has to say of its job. */
function headersOf({ id, body: { n } }: Received): Record<string, unknown> {
  return {
    "hathi-task": tasks[n % 2],
    "hathi-job-id": id.split("-").at(-1),
    "hathi-attempt": expect.stringMatching(/^[1-9]/),
    "hathi-priority": "0",
    ...(queueOf(n) !== undefined && { "hathi-queue": encodeURI(queueOf(n)!) }),
  };
}

/** Of each queue, what arrived at its first attempt, in the order in which it first did; RabbitMQ has a queue of its own for each task. */
function orderByQueue(received: readonly Received[]): number[][] {
  const order = new Map<string, Set<number>>();
  for (const { headers, body } of received) {
    const queue = headers["hathi-queue"];
    if (queue === undefined || headers["hathi-attempt"] !== "1") continue;
    const line = `${queue} of ${headers["hathi-task"]}`;
    order.set(line, (order.get(line) ?? new Set()).add(body.n));
  }
  return [...order.values()].map((numbers) => [...numbers]);
}

/** Messages that were made by hand. */
const messages = (...ids: string[]): ForwardMessage[] =>
  ids.map((id) => ({
    ...{
      id: `hathi-${id}`,
      task: tasks[0]!,
      payload: { n: 0 },
      body: '{"n":0}',
      key: undefined,
      priority: 0,
      attempt: 1,
    },
    headers: { "hathi-task": tasks[0]! },
  }));

/** What makes one message impossible for this broker, by where it is to go or by its options. */
const impossible: Readonly<Record<string, unknown>> = {
  nats: "not a subject",
  rabbitmq: "x".repeat(256),
  bullmq: { sizeLimit: 1 },
};
const possible: Readonly<Record<string, unknown>> = {
  nats: "mail.welcome",
  rabbitmq: tasks[0],
  bullmq: {},
  kafka: "mail",
};

for (const { name, program, start, prepare, receive, killsEveryMs, drops } of brokers) {
  describe.skipIf(!isInstalled(program))(name, () => {
    const ends: (() => Promise<void>)[] = [];
    let server: Server;
    // One server for both tests: RabbitMQ takes long to start.
    beforeAll(async () => {
      server = await start((end) => ends.push(end));
      await prepare(server.port);
    }, 120_000);
    afterAll(async () => {
      for (const end of ends) await end();
    });

    test(
      `gets each of ${count} jobs, whoever is killed, and copies have the same id`,
      async () => {
        const roll = dice(seed);
        const db = await freshDatabase();
        const startedAt = Date.now();
        const workers = await Promise.all([1, 2].map(() => startForwarder(db, name, server.port)));
        /** Kills that hit: the worker held jobs when it died; the broker died before all jobs had left. */
        const hits = { workers: 0, broker: 0 };
        const left = async (atMost: number) =>
          (await db.query("select from graphile_worker._private_jobs limit $1", [atMost])).length;
        let isOver = false;

        const killWorkers = async () => {
          while (!isOver && (isLarge || hits.workers === 0)) {
            await sleep(roll() * (hits.workers === 0 ? 100 : 2_000));
            const index = Math.floor(roll() * workers.length);
            const victim = workers[index]!;
            await until(async () => isOver || (await holdsJobs(db, victim)), { withinMs: 120_000 });
            if (isOver) return;
            victim.kill("SIGKILL");
            await victim.ended;
            if (await holdsJobs(db, victim)) hits.workers++;
            workers[index] = await startForwarder(db, name, server.port);
          }
        };
        const killBroker = async () => {
          while (!isOver && killsEveryMs !== undefined && (isLarge || hits.broker === 0)) {
            await sleep(roll() * (hits.broker === 0 ? 300 : killsEveryMs));
            await until(async () => isOver || (await left(1)) > 0, { withinMs: 120_000 });
            if (isOver) return;
            await server.kill();
            if ((await left(1)) > 0) hits.broker++;
            await sleep(roll() * 500);
            await server.start();
          }
        };
        const isHit = () => hits.workers > 0 && (killsEveryMs === undefined || hits.broker > 0);

        const added = new Map<string, string>();
        const slice = Math.ceil(count / 4);
        const trouble = Promise.all([killWorkers(), killBroker()]);
        const isAllForwarded = async () => {
          // More than asked for, if the kills have missed so far.
          if ((added.size < count || !isHit()) && (await left(slice)) < slice / 2) {
            const rows = await addJobs(db, added.size, slice);
            expect(rows).toHaveLength(slice);
            for (const { id, n } of rows) added.set(id, n);
          }
          return added.size >= count && isHit() && (await left(1)) === 0;
        };
        let isTroubled: unknown;
        trouble.catch((error: unknown) => {
          isTroubled = error;
        });
        await until(isAllForwarded, {
          withinMs: isLarge ? 1_500_000 : 240_000,
          what: `all jobs are forwarded (seed ${seed})`,
        })
          .catch(async (error: Error) => {
            const said = workers.map((worker) => `${worker.pid}: ${worker.output().slice(-1_000)}`).join("\n");
            const state = { hits, added: added.size, left: await left(count), isTroubled: String(isTroubled) };
            throw new Error(`${error.message}\n${JSON.stringify(state)}\n${said}`);
          })
          .finally(() => {
            isOver = true;
          });
        const seconds = (Date.now() - startedAt) / 1000;
        await trouble;

        const received = await receive(server.port);
        const bodyById = new Map<string, string>();
        for (const { id, body } of received) {
          const text = JSON.stringify(body);
          expect(bodyById.get(id) ?? text).toBe(text);
          bodyById.set(id, text);
        }
        for (const message of received) {
          const { headers, key } = message;
          expect(headers).toMatchObject(headersOf(message));
          if (key !== undefined) expect(encodeURI(key)).toBe(headers["hathi-queue"] ?? "");
        }
        for (const numbers of orderByQueue(received)) expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
        const copies = received.length - bodyById.size;
        console.log(`${name}, seed ${seed}: ${added.size} jobs in ${seconds} s, ${copies} copies, kills`, hits);
        expect(hits.workers).toBeGreaterThan(0);
        if (killsEveryMs !== undefined) expect(hits.broker).toBeGreaterThan(0);
        expect(bodyById.size).toBe(added.size);
        const wrong = [...added].filter(([id, n]) => bodyById.get(`hathi-graphile_worker-${id}`) !== `{"n":${n}}`);
        expect(wrong).toEqual([]);
        if (drops) expect(copies).toBe(0);
        expect(await db.query("select from graphile_worker._private_job_queues where locked_at is not null")).toEqual(
          [],
        );
      },
      isLarge ? 1_800_000 : 300_000,
    );

    test("a message that cannot be sent keeps no other from being sent", async () => {
      const choose = ({ id }: ForwardMessage): unknown => {
        if (id === "hathi-thrown") throw new Error("nowhere to go");
        return (id === "hathi-impossible" && impossible[name]) || possible[name];
      };
      const target: Target = await connectTarget(adapters, name, server.port, choose);
      const batch = messages("one", "two", "thrown", "three", "impossible", "four");
      const results = (await target.publish(batch)) as PublishResult[];
      const outcome = name === "bullmq" ? "retry" : name === "kafka" ? "acked" : "reject";
      expect(results).toMatchObject([
        { outcome: "acked" },
        { outcome: "acked" },
        { outcome: "retry", reason: { message: "nowhere to go" } },
        { outcome: "acked" },
        { outcome }, // the mock of Kafka takes any name and size
        { outcome: "acked" },
      ]);
    });

    if (name !== "nats" && name !== "rabbitmq") return; // the others have neither streams nor bindings
    test("what can never be routed fails permanently", async () => {
      const db = await freshDatabase();
      if (name === "nats") {
        const connection = await connect({ servers: `127.0.0.1:${server.port}` });
        await (await jetstreamManager(connection)).streams.update("MAIL", { subjects: ["mail.welcome"] });
        await connection.close();
      }
      const nowhere = name === "nats" ? "mail/digest" : "mail/unknown";
      await db.query("select graphile_worker.add_job('mail/welcome', '{}'), graphile_worker.add_job($1, '{}')", [
        nowhere,
      ]);
      await startForwarder(db, name, server.port);
      await until(async () => (await db.jobs()).length === 1);
      await until(async () => (await db.jobs())[0]!.last_error);
      expect(await db.jobs()).toMatchObject([
        { task_identifier: nowhere, attempts: 25, last_error: expect.stringMatching(/no (stream|queue) takes/) },
      ]);
    });

    // The last one: the server is gone afterwards.
    test("messages on their way when the broker dies were not refused, and use no attempt", async () => {
      const target: Target = await connectTarget(adapters, name, server.port, () => possible[name]);
      const publish = async (): Promise<string[]> => {
        const results = (await target.publish(messages("one", "two", "three"))) as PublishResult[];
        return results.map(({ outcome }) => outcome);
      };
      expect(await publish()).toEqual(["acked", "acked", "acked"]);
      server.freeze();
      const underWay = publish();
      await server.kill();
      expect(await underWay).toEqual(["absent", "absent", "absent"]);
    });
  });
}
