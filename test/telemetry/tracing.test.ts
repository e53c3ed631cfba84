import { SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { expect, onTestFinished, test } from "vitest";
import { runOnce } from "../../src/runner/run.ts";
import { makeWorkerUtils, type QueueUtils } from "../../src/runner/worker-utils.ts";
import type { TaskList } from "../../src/task.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { setUpTracing } from "./kit.ts";

async function open(db: TestDatabase): Promise<QueueUtils> {
  const utils = await makeWorkerUtils({ connectionString: db.url, logger: rememberingLogger().logger });
  onTestFinished(() => utils.release());
  return utils;
}

function runAll(db: TestDatabase, tasks: TaskList, hooks = {}): Promise<void> {
  const options = { connectionString: db.url, logger: rememberingLogger().logger, noHandleSignals: true };
  return runOnce({ ...options, hooks }, tasks);
}

test("a job carries the span in which it was added, hidden from its task, and its run is linked to it", async () => {
  const db = await freshDatabase();
  const { named } = setUpTracing();
  const utils = await open(db);
  const job = await trace
    .getTracer("app")
    .startActiveSpan("request", (request) => utils.addJob("greet", { name: "Ada" }).finally(() => request.end()));
  const add = named("add_job greet");
  expect(add.kind).toBe(SpanKind.PRODUCER);
  expect(add.parentSpanContext?.spanId).toBe(named("request").spanContext().spanId);
  expect(add.attributes).toEqual({
    "messaging.system": "graphile-worker",
    "messaging.operation.name": "add_job",
    "messaging.operation.type": "send",
    "messaging.destination.name": "greet",
    "messaging.message.id": job.id,
  });
  expect(job.payload).toEqual({ name: "Ada" });
  const { traceId, spanId } = add.spanContext();
  expect((await db.job(job.id))?.payload).toEqual({
    name: "Ada",
    _trace: { trace_id: traceId, span_id: spanId, flags: 1 },
  });

  const seen: unknown[] = [];
  await runAll(
    db,
    {
      greet: (payload, { job: own }) => {
        seen.push(payload, own.payload);
        trace.getTracer("app").startSpan("inside").end();
      },
    },
    { beforeJobRun: () => void trace.getActiveSpan()?.setAttribute("asked", true) },
  );
  expect(seen).toEqual([{ name: "Ada" }, { name: "Ada" }]);
  const ran = named("run_job greet");
  expect(ran.kind).toBe(SpanKind.CONSUMER);
  expect(ran.parentSpanContext).toBeUndefined();
  expect(ran.links.map(({ context }) => [context.traceId, context.spanId])).toEqual([[traceId, spanId]]);
  expect(ran.attributes).toEqual({
    "messaging.system": "graphile-worker",
    "messaging.operation.name": "run_job",
    "messaging.operation.type": "process",
    "messaging.destination.name": "greet",
    "messaging.message.id": job.id,
    "messaging.client.id": expect.stringMatching(/^otpool-/),
    "hathi.job.attempt": 1,
    asked: true,
  });
  expect(named("inside").parentSpanContext?.spanId).toBe(ran.spanContext().spanId);
});

test("many jobs share a span; one without a payload carries it too, and one that cannot is left as it is", async () => {
  const db = await freshDatabase();
  const { named } = setUpTracing();
  const utils = await open(db);
  class Order {
    total = 3;
  }
  const payloads = [{ n: 1 }, null, "text", new Order(), new Date(0), { _trace: "mine" }];
  const jobs = await utils.addJobs(payloads.map((payload) => ({ identifier: "t", payload })));
  const { traceId, spanId } = named("add_jobs t").spanContext();
  expect(named("add_jobs t").attributes).toMatchObject({
    "messaging.batch.message_count": 6,
    "messaging.destination.name": "t",
  });
  const _trace = { trace_id: traceId, span_id: spanId, flags: 1 };
  expect((await db.jobs()).map(({ payload }) => payload)).toEqual([
    { n: 1, _trace },
    { _trace },
    "text",
    { total: 3, _trace },
    new Date(0).toISOString(),
    { _trace: "mine" },
  ]);
  const seen: unknown[] = [];
  await runAll(db, { t: (payload) => void seen.push(payload) });
  expect(seen).toEqual([{ n: 1 }, {}, "text", { total: 3 }, new Date(0).toISOString(), { _trace: "mine" }]);
  expect(jobs.map(({ payload }) => payload)).toEqual(seen);
});

test("jobs for different tasks share a span that names none of them", async () => {
  const db = await freshDatabase();
  const { named } = setUpTracing();
  const utils = await open(db);
  await utils.addJobs([
    { identifier: "a", payload: {} },
    { identifier: "b", payload: {} },
  ]);
  expect(named("add_jobs").attributes).not.toHaveProperty("messaging.destination.name");
});

test("a joined batch is linked to each span that added to it, and what is left of it keeps its own", async () => {
  const db = await freshDatabase();
  const { named, spans } = setUpTracing();
  const utils = await open(db);
  await utils.addBatchJob("batch", [{ n: 1 }, { n: 2 }], { jobKey: "k" });
  const job = await utils.addBatchJob("batch", [{ n: 3 }], { jobKey: "k" });
  const [first, second] = spans().map((span) => span.spanContext().spanId);
  const seen: unknown[] = [];
  await runAll(db, {
    batch: (items: { n: number }[]) => {
      seen.push(items);
      return items.map(({ n }) => (n === 3 ? Promise.reject(new Error("three")) : undefined));
    },
  });
  expect(seen).toEqual([[{ n: 1 }, { n: 2 }, { n: 3 }]]);
  const ran = named("run_job batch");
  expect(ran.links.map(({ context }) => context.spanId)).toEqual([first, first, second]);
  expect((await db.job(job.id))?.payload).toEqual([
    { n: 3, _trace: { trace_id: expect.any(String), span_id: second, flags: 1 } },
  ]);
});

test("what fails, fails its span: the run of a task, and an add that is refused", async () => {
  const db = await freshDatabase();
  const { named } = setUpTracing();
  const utils = await open(db);
  await expect(utils.addJob("t", {}, { priority: 1e9 })).rejects.toThrow("'priority'");
  expect(named("add_job t").status.code).toBe(SpanStatusCode.ERROR);
  expect(named("add_job t").attributes["error.type"]).toBe("JobSpecError");
  await utils.addJob("bad", {});
  await runAll(db, {
    bad: () => {
      throw new RangeError("boom");
    },
  });
  const ran = named("run_job bad");
  expect(ran.status).toEqual({ code: SpanStatusCode.ERROR, message: "boom" });
  expect(ran.attributes["error.type"]).toBe("RangeError");
  expect(ran.events.map(({ name }) => name)).toEqual(["exception"]);
});

test.each(["onStart", "onEnd"] as const)("a span processor that throws in %s harms no job", async (method) => {
  const db = await freshDatabase();
  const quiet = {
    onStart: () => undefined,
    onEnd: () => undefined,
    forceFlush: async () => {},
    shutdown: async () => {},
  };
  const broken = (): never => {
    throw new Error("the processor is broken");
  };
  setUpTracing({ ...quiet, [method]: broken });
  const utils = await open(db);
  await utils.addJob("t", { n: 1 });
  await utils.addJobs([{ identifier: "t", payload: { n: 2 } }]);
  const seen: unknown[] = [];
  await runAll(db, { t: (payload) => void seen.push(payload) });
  expect(seen).toEqual([{ n: 1 }, { n: 2 }]);
  expect(await db.jobs()).toEqual([]);
});

test("on a caller's transaction jobs are traced alike", async () => {
  const db = await freshDatabase();
  const { named } = setUpTracing();
  const utils = await open(db);
  const client = await db.pool.connect();
  await client.query("begin");
  const job = await utils.withTransaction(client).addJob("t", {});
  await client.query("commit");
  client.release();
  expect((await db.job(job.id))?.payload).toMatchObject({
    _trace: { span_id: named("add_job t").spanContext().spanId },
  });
});

test("without tracing nothing is added; a trace that came with a job is hidden all the same, and nothing else is", async () => {
  const db = await freshDatabase();
  const utils = await open(db);
  const plain = await utils.addJob("t", { n: 1 });
  expect((await db.job(plain.id))?.payload).toEqual({ n: 1 });
  const _trace = { trace_id: "0af7651916cd43dd8448eb211c80319c", span_id: "b7ad6b7169203331", flags: 1 };
  const others = [{ ..._trace, more: 1 }, { ..._trace, span_id: "short" }, { ..._trace, flags: "01" }, null];
  await utils.addJobs([{ n: 2, _trace }, ...others.map((other) => ({ _trace: other }))].map(toSpec));
  const seen: unknown[] = [];
  await runAll(db, { t: (payload) => void seen.push(payload) });
  expect(seen).toEqual([{ n: 1 }, { n: 2 }, ...others.map((other) => ({ _trace: other }))]);
});

function toSpec(payload: object): { identifier: string; payload: object } {
  return { identifier: "t", payload };
}
