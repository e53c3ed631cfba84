import { vacuumPatienceSeconds } from "../db/describe-holder.ts";
import type { EventHandlers } from "../emit.ts";
import type { Meter, MeteredPool } from "../hooks/meter.ts";
import { version } from "../version.ts";
import { type Health, judgeLive, judgeReady } from "./health.ts";
import { LoopDelay } from "./loop-delay.ts";
import { OtelMeter } from "./otel-meter.ts";
import { PoolMeter } from "./pool-meter.ts";
import { PrometheusText } from "./prometheus-text.ts";
import { Rollup } from "./rollup.ts";
import { SeriesByTask } from "./task-series.ts";
import { TimesRecorder } from "./times-recorder.ts";
import { writeProcess } from "./write-process.ts";
import { writeRollups } from "./write-rollup.ts";

export interface MetricsOptions {
  /** Milliseconds for which something may hold back vacuum on the table of jobs before that is logged; five minutes if left out. */
  readonly vacuumWarningAfter?: number;
  /** Tasks that get series of their own; all others share the label `(other)`. 200 if left out. */
  readonly maxTasks?: number;
  /** True: everything is also handed to OpenTelemetry's metrics, by way of the package `@opentelemetry/api`, which you install. */
  readonly openTelemetry?: boolean;
}

/** Measures workers of this process; give it to `run` as the option `metrics`. */
export interface Metrics extends Meter {
  /** All metrics in Prometheus's text format. */
  prometheus(): Promise<string>;
  /** Whether the loops of the workers turn. */
  live(): Health;
  /** Whether the last claim of every worker succeeded. */
  ready(): Health;
}

/** Makes metrics for the workers of a process; several may share one. */
export function makeMetrics({
  maxTasks = 200,
  openTelemetry = false,
  vacuumWarningAfter = vacuumPatienceSeconds * 1000,
}: MetricsOptions = {}): Metrics {
  const tasks = new SeriesByTask(maxTasks);
  const loopDelay = new LoopDelay();
  let pools: PoolMeter[] = [];
  let recovered = 0;
  const otel = openTelemetry
    ? new OtelMeter({ pools: () => pools, rollups: () => latestBySchema(pools), loopDelay }, (task) =>
        tasks.labelOf(task),
      )
    : undefined;
  const rollupOptions = { maxTasks, vacuumWarningSeconds: vacuumWarningAfter / 1000 };
  return {
    hooks: {
      workerRecovered: ({ jobsRecovered }) => {
        recovered += jobsRecovered;
        otel?.recovered(jobsRecovered);
      },
      workerShutdown: async ({ workerId }) => {
        if (pools.every(({ hasEnded, isStopping }) => hasEnded || isStopping)) loopDelay.stop();
        const meter = pools.find(({ pool }) => pool.workerPool().id === workerId);
        await Promise.all([meter?.rollup?.stop(), meter?.recorder?.stop()]);
      },
    },
    attach: (pool: MeteredPool) => {
      const { pgPool } = pool;
      const rollup = pgPool && new Rollup({ ...pool, pgPool }, rollupOptions);
      // Pools that share metrics share their counts, which are recorded once.
      const isFirst = pools.every(({ hasEnded }) => hasEnded);
      const recorder = pgPool && isFirst ? new TimesRecorder({ ...pool, pgPool }, tasks) : undefined;
      const meter = new PoolMeter(pool, tasks, { rollup, recorder });
      // A successor takes the place of those that have ended.
      pools = [...pools.filter(({ hasEnded }) => !hasEnded), meter];
      for (const service of [rollup, recorder, loopDelay]) service?.start();
      return otel
        ? both(
            meter.handlers,
            otel.handlersFor((job) => meter.waitMs(job)),
          )
        : meter.handlers;
    },
    added: (task, count, durationMs, error) => {
      tasks.of(task).added += count;
      otel?.added(task, count, durationMs, error);
    },
    prometheus: () => {
      const text = new PrometheusText();
      text.gauge("hathi_info", "The version of Hathi.", [{ labels: { version }, value: 1 }]);
      writeProcess(text, { tasks, pools, loopDelay, recovered });
      writeRollups(text, latestBySchema(pools));
      return Promise.resolve(text.toString());
    },
    live: () => judgeLive(pools),
    ready: () => judgeReady(pools),
  };
}

/** Each event goes to the first, and then to the second. */
function both(first: EventHandlers, second: EventHandlers): EventHandlers {
  const merged: Record<string, (payload: never) => void> = { ...first };
  for (const [name, handle] of Object.entries(second) as [string, (payload: never) => void][]) {
    const before = merged[name];
    merged[name] = before
      ? (payload) => {
          before(payload);
          handle(payload);
        }
      : handle;
  }
  return merged as EventHandlers;
}

/** Several pools may work on one schema, whose figures must not be written twice. */
function latestBySchema(pools: readonly PoolMeter[]): Rollup[] {
  const bySchema = new Map(pools.flatMap(({ rollup }) => (rollup ? [[rollup.schema, rollup] as const] : [])));
  return [...bySchema.values()];
}
