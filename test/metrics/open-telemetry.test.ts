import { metrics as api } from "@opentelemetry/api";
import { MeterProvider, MetricReader } from "@opentelemetry/sdk-metrics";
import { expect, onTestFinished, test } from "vitest";
import { makeWorkerUtils } from "../../src/index.ts";
import { makeMetrics } from "../../src/metrics/index.ts";
import { freshDatabase } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { until } from "../support/wait.ts";
import { heldTask, startWorker } from "../worker/kit.ts";

interface DataPoint {
  readonly attributes: Record<string, string>;
  readonly value:
    | number
    | { readonly count: number; readonly sum: number; readonly buckets: { readonly boundaries: number[] } };
}
interface Metric {
  readonly descriptor: { readonly name: string; readonly unit: string };
  readonly dataPoints: readonly DataPoint[];
}
interface Sdk {
  readonly reader: {
    collect(): Promise<{ resourceMetrics: { scopeMetrics: { metrics: Metric[] }[] }; errors: unknown[] }>;
  };
  readonly provider: { shutdown(): Promise<void> };
}

/** The real SDK, registered as an application would. */
async function registerSdk(): Promise<Sdk> {
  const reader = new (class extends MetricReader {
    onForceFlush(): Promise<void> {
      return Promise.resolve();
    }
    onShutdown(): Promise<void> {
      return Promise.resolve();
    }
  })();
  const provider = new MeterProvider({ readers: [reader] });
  api.setGlobalMeterProvider(provider);
  onTestFinished(async () => {
    api.disable();
    await provider.shutdown();
  });
  // Its types differ by the kind of metric; the tests read what all have in common.
  return { reader: reader as unknown as Sdk["reader"], provider };
}

async function collect({ reader }: Sdk): Promise<Map<string, Metric>> {
  const { resourceMetrics, errors } = await reader.collect();
  expect(errors).toEqual([]);
  const all = resourceMetrics.scopeMetrics.flatMap(({ metrics }) => metrics);
  return new Map(all.map((metric) => [metric.descriptor.name, metric]));
}

/** The values of a metric by its attributes other than the system's name; of a histogram, the count. */
function values(metric: Metric | undefined): Record<string, number> {
  return Object.fromEntries(
    (metric?.dataPoints ?? []).map(({ attributes: { "messaging.system.name": system, ...attributes }, value }) => {
      expect(system).toBe("hathi");
      return [Object.values(attributes).join(" "), typeof value === "number" ? value : value.count];
    }),
  );
}

test("everything is handed to OpenTelemetry's SDK with today's names, in seconds", async () => {
  const sdk = await registerSdk();
  const db = await freshDatabase();
  const metrics = makeMetrics({ openTelemetry: true, maxTasks: 3 });
  const held = heldTask();
  const { runner, completed } = await startWorker(
    db,
    {
      good: () => undefined,
      bad: () => Promise.reject(new RangeError("no")),
      held: held.task,
      fourth: () => undefined,
    },
    { metrics, concurrency: 4, taskOptions: { held: { concurrency: 1 } } },
  );
  await runner.addJob("good", {});
  await runner.addJobs([
    { identifier: "good", payload: {} },
    { identifier: "bad", payload: {}, maxAttempts: 1 },
    { identifier: "held", payload: {} },
  ]);
  await runner.addJob("fourth", {});
  await completed(4);
  await held.begun(1);
  await expect(runner.addJob("good", {}, { priority: 1e9 })).rejects.toThrow("priority");

  const found = await until(
    async () => {
      const all = await collect(sdk);
      const jobs = values(all.get("hathi.jobs"));
      const running = values(all.get("hathi.limit.running"));
      return jobs["graphile_worker bad dead"] === 1 && running["graphile_worker task held"] === 1 && all;
    },
    { what: "the rollup has seen the table with both jobs" },
  );
  expect(values(found.get("messaging.client.sent.messages"))).toEqual({
    "send send good": 2,
    "send send bad": 1,
    "send send held": 1,
    "send send (other)": 1,
  });
  expect(values(found.get("messaging.client.operation.duration"))).toMatchObject({
    "send send good": 2,
    "send send good JobSpecError": 1,
    "receive receive": expect.any(Number),
    "settle settle": expect.any(Number),
  });
  expect(values(found.get("messaging.client.consumed.messages"))).toMatchObject({
    "process process good": 2,
    "process process held": 1,
  });
  expect(values(found.get("messaging.process.duration"))).toEqual({
    "process process good": 2,
    "process process bad RangeError": 1,
    "process process (other)": 1,
  });
  expect(values(found.get("hathi.jobs.finished"))).toEqual({
    "good succeeded": 2,
    "bad permanentlyFailed": 1,
    "(other) succeeded": 1,
  });
  expect(values(found.get("hathi.job.wait.duration"))).toMatchObject({ "process process good": 2 });
  expect(values(found.get("hathi.slots"))).toEqual({ "graphile_worker busy": 1, "graphile_worker free": 3 });
  expect(values(found.get("hathi.limit.running"))).toEqual({ "graphile_worker task held": 1 });
  expect(values(found.get("hathi.limit.waiting"))).toEqual({ "graphile_worker task held": 0 });
  expect(values(found.get("hathi.pool.connections"))).toMatchObject({ "graphile_worker waiting": 0 });
  for (const name of [
    "hathi.claim.batch.size",
    "hathi.settle.batch.size",
    "hathi.event_loop.delay",
    "hathi.dead_tuples",
    "hathi.oldest_runnable",
  ])
    expect(found.get(name)?.dataPoints.length, name).toBeGreaterThan(0);

  const runs = found.get("messaging.process.duration")!;
  expect(runs.descriptor.unit).toBe("s");
  const [first] = runs.dataPoints;
  expect(first!.value).toMatchObject({ buckets: { boundaries: expect.arrayContaining([0.005, 10, 3_600]) } });
  expect((first!.value as { sum: number }).sum).toBeLessThan(60);
  for (const { descriptor } of found.values()) expect(descriptor.name).toMatch(/^(messaging|hathi)\.[a-z_.]+$/);
});

test("an SDK that is registered late gets what happens from there on, and what a producer adds", async () => {
  const db = await freshDatabase();
  const metrics = makeMetrics({ openTelemetry: true });
  const utils = await makeWorkerUtils({ connectionString: db.url, metrics, logger: rememberingLogger().logger });
  onTestFinished(() => utils.release());
  await utils.addJob("early", {});
  const sdk = await registerSdk();
  await utils.addJob("late", {});
  expect(values((await collect(sdk)).get("messaging.client.sent.messages"))).toEqual({ "send send late": 1 });
  expect(await metrics.prometheus()).toContain('hathi_jobs_added_total{task="early"} 1');
});
