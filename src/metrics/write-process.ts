import type { LoopDelay } from "./loop-delay.ts";
import type { PoolMeter } from "./pool-meter.ts";
import type { PrometheusText, Sample } from "./prometheus-text.ts";
import type { SeriesByTask } from "./task-series.ts";

/** What this process itself has counted. */
export interface ProcessSeries {
  readonly tasks: SeriesByTask;
  readonly pools: readonly PoolMeter[];
  readonly loopDelay: LoopDelay;
  readonly recovered: number;
}

export function writeProcess(text: PrometheusText, { tasks, pools, loopDelay, recovered }: ProcessSeries): void {
  const byTask = tasks.entries();
  const seen = byTask.filter(([, { wait, run }]) => wait.count + run.count > 0);
  text.times(
    "hathi_job_wait_seconds",
    "Time from when a job was due to its start.",
    seen.map(([task, { wait }]) => ({ labels: { task }, of: wait })),
  );
  text.times(
    "hathi_job_run_seconds",
    "Time that a task took for a job.",
    seen.map(([task, { run }]) => ({ labels: { task }, of: run })),
  );
  text.counter(
    "hathi_jobs_finished_total",
    "Attempts whose outcome is written, by outcome.",
    byTask.flatMap(([task, { finished }]) =>
      Object.entries(finished)
        .filter(([, value]) => value > 0)
        .map(([outcome, value]) => ({ labels: { task, outcome }, value })),
    ),
  );
  text.counter(
    "hathi_jobs_added_total",
    "Jobs that this process added or replaced.",
    byTask.filter(([, { added }]) => added > 0).map(([task, { added }]) => ({ labels: { task }, value: added })),
  );
  text.counter("hathi_jobs_recovered_total", "Jobs that this process took from dead workers.", [{ value: recovered }]);
  writePools(text, pools);
  text.gauge(
    "hathi_event_loop_delay_seconds",
    "How late timers fire in this process, over the last minute or two.",
    loopDelay.read().map(({ percentile, seconds }) => ({ labels: { percentile }, value: seconds })),
  );
}

function writePools(text: PrometheusText, pools: readonly PoolMeter[]): void {
  const series = pools.map((meter) => ({ labels: { schema: meter.pool.schema }, meter }));
  const of = <Key extends "claims" | "settles" | "claimSizes" | "settleSizes">(
    key: Key,
  ): { labels: { schema: string }; of: PoolMeter[Key] }[] =>
    series.map(({ labels, meter }) => ({ labels, of: meter[key] }));
  const gauges = (values: (meter: PoolMeter) => Record<string, number>): Sample[] =>
    series.flatMap(({ labels, meter }) =>
      Object.entries(values(meter)).map(([state, value]) => ({ labels: { ...labels, state }, value })),
    );
  text.gauge("hathi_slots", "Places for running jobs in this process.", gauges(slots));
  text.times("hathi_claim_seconds", "Time that claims took.", of("claims"));
  text.sizes("hathi_claim_batch_size", "Jobs that claims brought.", of("claimSizes"));
  text.counter(
    "hathi_claim_errors_total",
    "Claims that failed.",
    series.map(({ labels, meter }) => ({ labels, value: meter.claimErrors })),
  );
  text.times("hathi_settle_seconds", "Time that writing outcomes took.", of("settles"));
  text.sizes("hathi_settle_batch_size", "Outcomes that were written together.", of("settleSizes"));
  text.gauge("hathi_pool_connections", "Database connections of this process.", gauges(connections));
}

export function slots({ pool }: PoolMeter): Record<string, number> {
  const workers = pool.workerPool()._workers;
  const busy = workers.filter((worker) => worker.getActiveJob() !== null).length;
  return { busy, free: workers.length - busy };
}

export function connections({ pool: { pgPool } }: PoolMeter): Record<string, number> {
  if (!pgPool) return {};
  const { totalCount: total, idleCount: idle, waitingCount: waiting } = pgPool;
  return { busy: total - idle, idle, waiting };
}
