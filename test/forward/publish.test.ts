import { expect, test } from "vitest";
import { type ForwardMessage, forward, type PublishOutcome } from "../../src/forward/index.ts";
import { makeWorkerUtils } from "../../src/runner/worker-utils.ts";
import { deferred } from "../../src/util/deferred.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { startWorker } from "../worker/kit.ts";

/** A target that answers as the payload of each message says. */
function obedient(sent: ForwardMessage[][]) {
  return async (batch: readonly ForwardMessage[]): Promise<PublishOutcome[]> => {
    sent.push([...batch]);
    return batch.map(({ payload, attempt }) => {
      const { answers = ["acked"] } = payload as { answers?: PublishOutcome[] };
      return answers[Math.min(attempt, answers.length) - 1]!;
    });
  };
}

const add = (db: TestDatabase, payloads: readonly object[], queue: string | null = null) =>
  db.query(
    `select graphile_worker.add_job('mail/send', payload, queue_name => $2, priority => 7)
     from json_array_elements($1) with ordinality as list (payload, nth) order by nth`,
    [JSON.stringify(payloads), queue],
  );

test("a batch is published at once, and only what was acknowledged is completed", async () => {
  const db = await freshDatabase();
  const sent: ForwardMessage[][] = [];
  const to = async (batch: readonly ForwardMessage[]): Promise<PublishOutcome[]> => {
    const outcomes = await obedient(sent)(batch);
    await haveStarted.promise;
    return outcomes;
  };
  await add(db, [{ n: 1 }, { answers: ["retry", "acked"] }, { answers: ["reject"] }, { n: 4 }]);
  const haveStarted = deferred();
  const worker = await startWorker(
    db,
    {},
    {
      forward: [forward({ tasks: ["mail/*"], to, backoff: { type: "fixed", delay: 5 } })],
      pollInterval: 50,
    },
  );
  await until(() => worker.of("job:start").length === 4);
  haveStarted.resolve();
  await until(async () => (await db.jobs()).length === 1);
  await until(async () => (await db.jobs())[0]!.locked_by === null);
  // A busy process may start them in two turns of its event loop; what gathers while a batch is under way goes out with the next.
  const first = sent
    .slice(0, 2)
    .flat()
    .filter(({ attempt }) => attempt === 1);
  expect(first).toHaveLength(4);
  expect(await db.jobs()).toMatchObject([
    { id: "3", attempts: 25, max_attempts: 25, last_error: expect.stringContaining("can never take the message") },
  ]);
  const again = sent.flat().filter(({ attempt }) => attempt > 1);
  expect(again).toMatchObject([{ id: "hathi-graphile_worker-2", attempt: 2 }]);
  expect(again[0]!.id).toBe(first[1]!.id);
  expect(
    worker
      .of("job:complete")
      .map(({ outcome }) => outcome)
      .sort(),
  ).toEqual(["failed", "permanentlyFailed", "succeeded", "succeeded", "succeeded"].sort());
});

test("a message says which task, attempt, priority, queue and trace it is of", async () => {
  const db = await freshDatabase();
  const sent: ForwardMessage[][] = [];
  const trace = { trace_id: "0af7651916cd43dd8448eb211c80319c", span_id: "b7ad6b7169203331", flags: 1 };
  await add(db, [{ to: "Ada", _trace: trace }], "tenant 1");
  await startWorker(db, {}, { forward: [forward({ tasks: ["mail/send"], to: obedient(sent) })] });
  await until(() => sent.length > 0);
  expect(sent).toEqual([
    [
      {
        id: "hathi-graphile_worker-1",
        task: "mail/send",
        payload: { to: "Ada" },
        body: '{"to":"Ada"}',
        key: "tenant 1",
        priority: 7,
        attempt: 1,
        headers: {
          "hathi-task": "mail/send",
          "hathi-job-id": "1",
          "hathi-attempt": "1",
          "hathi-priority": "7",
          "hathi-queue": "tenant%201",
          traceparent: `00-${trace.trace_id}-${trace.span_id}-01`,
        },
      },
    ],
  ]);
});

test("messages of a named queue leave one after the other, in order", async () => {
  const db = await freshDatabase();
  const underWay = new Map<string, number>();
  const order = new Map<string, number[]>();
  let overlaps = 0;
  const payloads = (from: string) => Array.from({ length: 40 }, (_, n) => ({ from, n }));
  await add(db, payloads("a"), "a");
  await add(db, payloads("b"), "b");
  await startWorker(
    db,
    {},
    {
      forward: [
        forward({
          tasks: ["mail/*"],
          to: async (batch) => {
            for (const { key } of batch) {
              const count = (underWay.get(key!) ?? 0) + 1;
              underWay.set(key!, count);
              if (count > 1) overlaps++;
            }
            await new Promise((resolve) => setTimeout(resolve, Math.random() * 3));
            return batch.map(({ key, payload }) => {
              underWay.set(key!, underWay.get(key!)! - 1);
              order.set(key!, [...(order.get(key!) ?? []), (payload as { n: number }).n]);
              return "acked" as const;
            });
          },
        }),
      ],
    },
  );
  await until(async () => (await db.jobs()).length === 0);
  expect(overlaps).toBe(0);
  expect([...order.values()]).toEqual([payloads("a").map(({ n }) => n), payloads("b").map(({ n }) => n)]);
});

test("an absent target burns no attempt and is logged once; what it never got is put back when the worker stops", async () => {
  const db = await freshDatabase();
  let tries = 0;
  let isThere = false;
  const to = async (batch: readonly ForwardMessage[]) => {
    tries++;
    if (!isThere) throw new Error("connect ECONNREFUSED");
    return batch.map(() => "acked" as const);
  };
  await add(db, [{ n: 1 }, { n: 2 }]);
  const worker = await startWorker(db, {}, { forward: [forward({ tasks: ["mail/*"], to })] });
  await until(() => tries >= 3);
  const said = () => worker.lines.filter(({ message }) => /cannot be reached/.test(message));
  expect(said()).toHaveLength(1);
  await worker.runner.stop();
  expect(await db.jobs()).toMatchObject([
    { attempts: 0, locked_by: null, last_error: null },
    { attempts: 0, locked_by: null, last_error: null },
  ]);

  isThere = true;
  await startWorker(db, {}, { forward: [forward({ tasks: ["mail/*"], to })] });
  await until(async () => (await db.jobs()).length === 0);
});

test("a job that is cancelled while its target is absent is not sent", async () => {
  const db = await freshDatabase();
  let tries = 0;
  await add(db, [{ n: 1 }]);
  const worker = await startWorker(
    db,
    {},
    {
      forward: [forward({ tasks: ["mail/*"], to: async () => Promise.reject(new Error(`away ${++tries}`)) })],
    },
  );
  await until(() => tries > 0);
  const utils = await makeWorkerUtils({ connectionString: db.url });
  await utils.cancelJobs(["1"]);
  await utils.release();
  await worker.nth("job:cancelled");
  expect(await db.jobs()).toEqual([]);
});

test("tasks that appear later are forwarded too, and others are left alone", async () => {
  const db = await freshDatabase();
  const sent: ForwardMessage[][] = [];
  const ran: string[] = [];
  await startWorker(
    db,
    { other: (_payload, { job }) => void ran.push(job.id) },
    {
      forward: [forward({ tasks: ["mail/*"], to: obedient(sent) })],
      pollInterval: 50,
    },
  );
  await db.query(
    "select graphile_worker.add_job('other'), graphile_worker.add_job('mail/new'), graphile_worker.add_job('mailbox')",
  );
  await until(async () => (await db.jobs()).length === 1);
  expect(sent.flat().map(({ task }) => task)).toEqual(["mail/new"]);
  expect(ran).toEqual(["1"]);
  expect(await db.jobs()).toMatchObject([{ task_identifier: "mailbox", attempts: 0 }]);
});

test.each([
  ["undefined", undefined],
  ["'ack'", "ack"],
  ["Promise", Promise.resolve("acked")],
])("an outcome that is none (%s) is logged, and only its message is sent again", async (shown, outcome) => {
  const db = await freshDatabase();
  await add(db, [{ n: 1 }, { n: 2 }, { n: 3 }]);
  let tries = 0;
  const to = async (batch: readonly ForwardMessage[]) => {
    tries++;
    return batch.map(({ id }) => (id.endsWith("-2") ? outcome : "acked")) as PublishOutcome[];
  };
  const worker = await startWorker(db, {}, { forward: [forward({ tasks: ["mail/*"], to })] });
  await until(async () => tries >= 3 && (await db.jobs()).length === 1);
  expect(await db.jobs()).toMatchObject([{ id: "2" }]);
  expect(worker.lines.map(({ message }) => message)).toContainEqual(
    expect.stringMatching(
      new RegExp(`'publish' returned ${shown}.*; it must be 'acked', 'retry', 'reject' or 'absent'`),
    ),
  );
  await worker.runner.stop();
  expect(await db.jobs()).toMatchObject([{ attempts: 0, locked_by: null }]);
});

test.each(["stop", "kill"] as const)(
  "a target that never answers holds up no %s, and its jobs have used no attempt",
  async (end) => {
    const db = await freshDatabase();
    await add(db, [{ n: 1 }, { n: 2 }]);
    let isAsked = false;
    const to = (): Promise<never> => {
      isAsked = true;
      return new Promise(() => undefined);
    };
    const worker = await startWorker(
      db,
      {},
      {
        forward: [forward({ tasks: ["mail/*"], to, maxBatch: 1 })],
        // A kill does not wait for it.
        gracefulShutdownAbortTimeout: end === "stop" ? 100 : 1_000_000,
      },
    );
    await until(() => isAsked);
    await worker.runner[end]();
    expect(await db.jobs()).toMatchObject([
      { attempts: 0, locked_by: null, last_error: null },
      { attempts: 0, locked_by: null, last_error: null },
    ]);
  },
);

test("a pattern leaves alone what the worker runs itself, what is named exactly, and what an earlier pattern matches", async () => {
  const db = await freshDatabase();
  const went: Record<string, string> = {};
  const to = (way: string) => async (batch: readonly ForwardMessage[]) =>
    batch.map(({ task }) => {
      went[task] = way;
      return "acked" as const;
    });
  await startWorker(
    db,
    {
      "mail/here": () => {
        went["mail/here"] = "task";
      },
    },
    {
      forward: [
        forward({ tasks: ["mail/*"], to: to("pattern") }),
        forward({ tasks: ["mail/one"], to: to("name") }),
        forward({ tasks: ["*"], to: to("rest") }),
      ],
      pollInterval: 50,
    },
  );
  const names = ["mail/here", "mail/one", "mail/two", "constructor"];
  await db.query("select graphile_worker.add_job(name) from unnest($1::text[]) as name", [names]);
  await until(async () => (await db.jobs()).length === 0);
  expect(Object.entries(went).sort()).toEqual([
    ["constructor", "rest"],
    ["mail/here", "task"],
    ["mail/one", "name"],
    ["mail/two", "pattern"],
  ]);
});

test.each([
  [{ a: () => undefined }, ["a"], "is in the task list and in 'tasks' of forward()"],
  [{}, ["a", "a"], "is in 'tasks' of two forwarders"],
])("a task that would go two ways is refused when the worker starts (%o, %o)", async (taskList, names, message) => {
  const db = await freshDatabase();
  const forwarders = names.map((name) => forward({ tasks: [name], to: async () => [] }));
  await expect(startWorker(db, taskList, { forward: forwarders })).rejects.toThrow(message);
});

test.each([
  [{ tasks: [] }, /'tasks' of forward\(\) must be an array/],
  [{ tasks: ["a"] }, /'to' of forward\(\) must be a target/],
  [{ tasks: ["a"], to: async () => [], maxInFlight: 0 }, /'maxInFlight' of forward\(\) must be a whole number/],
  [{ tasks: ["a"], to: async () => [], maxBatches: 1 }, /Unknown key 'maxBatches' in forward\(\).*maxBatch/],
])("forward(%o) is refused", (options, message) => {
  expect(() => forward(options as never)).toThrow(message);
});
