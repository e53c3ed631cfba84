import type * as OpenTelemetry from "@opentelemetry/api";
import type { Attributes, Counter, Histogram, Meter, ObservableResult } from "@opentelemetry/api";
import type { EventHandlers } from "../emit.ts";
import { ConfigError } from "../errors.ts";
import { requireOptional } from "../util/require-optional.ts";
import { version } from "../version.ts";
import { gaugesOf, type ProcessState } from "./otel-gauges.ts";
import { sizeBounds } from "./sizes.ts";

/** In seconds, as the conventions recommend. */
const operationBounds = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
/** Jobs may wait and run for longer. */
const jobBounds = [...operationBounds, 30, 60, 300, 900, 1_800, 3_600];

const system = { "messaging.system.name": "hathi" } as const;
const operation = (name: "send" | "receive" | "process" | "settle"): Attributes => ({
  ...system,
  "messaging.operation.name": name,
  "messaging.operation.type": name,
});
const sending = operation("send");
const receiving = operation("receive");
const processing = operation("process");
const settling = operation("settle");

interface Instruments {
  readonly operations: Histogram;
  readonly sent: Counter;
  readonly consumed: Counter;
  readonly runs: Histogram;
  readonly waits: Histogram;
  readonly finished: Counter;
  readonly recovered: Counter;
  readonly claimErrors: Counter;
  readonly claimSizes: Histogram;
  readonly settleSizes: Histogram;
}

/** Hands what is measured to OpenTelemetry, with the names of its messaging conventions where there are any. */
export class OtelMeter {
  readonly #state: ProcessState;
  readonly #labelOf: (task: string) => string;
  readonly #api: typeof OpenTelemetry;
  #known: { readonly provider: unknown; readonly instruments: Instruments } | undefined;

  /** `labelOf` bounds the number of tasks. */
  constructor(state: ProcessState, labelOf: (task: string) => string) {
    this.#state = state;
    this.#labelOf = labelOf;
    const api = requireOptional<typeof OpenTelemetry>("@opentelemetry/api");
    if (!api)
      throw new ConfigError("'openTelemetry' needs the package '@opentelemetry/api': install it beside 'hathi'.");
    this.#api = api;
    void this.#instruments;
  }

  /** What to measure of a pool. `waitMsOf` says how long a job that starts now has been due. */
  handlersFor(waitMsOf: (job: Parameters<NonNullable<EventHandlers["job:start"]>>[0]["job"]) => number): EventHandlers {
    return {
      "claim:complete": ({ jobs, durationMs }) => {
        const { operations, claimSizes } = this.#instruments;
        operations.record(durationMs / 1000, receiving);
        claimSizes.record(jobs.length, system);
      },
      "claim:error": ({ error }) => {
        this.#instruments.claimErrors.add(1, { ...system, ...failure(error) });
      },
      "settle:complete": ({ count, durationMs }) => {
        const { operations, settleSizes } = this.#instruments;
        operations.record(durationMs / 1000, settling);
        settleSizes.record(count, system);
      },
      "job:start": ({ job }) => {
        const { waits, consumed } = this.#instruments;
        const about = { ...processing, ...this.#destination(job.task_identifier) };
        waits.record(waitMsOf(job) / 1000, about);
        consumed.add(1, about);
      },
      "job:complete": ({ job, durationMs, outcome, error }) => {
        const { runs, finished } = this.#instruments;
        const about = { ...processing, ...this.#destination(job.task_identifier), ...(error && failure(error)) };
        runs.record(durationMs / 1000, about);
        finished.add(1, { ...system, ...this.#destination(job.task_identifier), "hathi.job.outcome": outcome });
      },
      "job:lost": ({ job }) => {
        const about = { ...system, ...this.#destination(job.task_identifier), "hathi.job.outcome": "lost" };
        this.#instruments.finished.add(1, about);
      },
    };
  }

  added(task: string, count: number, durationMs?: number, error?: unknown): void {
    const about = { ...sending, ...this.#destination(task), ...(error !== undefined && failure(error)) };
    const { operations, sent } = this.#instruments;
    if (durationMs !== undefined) operations.record(durationMs / 1000, about);
    if (count > 0) sent.add(count, about);
  }

  recovered(count: number): void {
    this.#instruments.recovered.add(count, system);
  }

  #destination(task: string): Attributes {
    return { "messaging.destination.name": this.#labelOf(task) };
  }

  /** An SDK may be registered after us, and then counts from there on. */
  get #instruments(): Instruments {
    const provider = this.#api.metrics.getMeterProvider();
    if (this.#known?.provider === provider) return this.#known.instruments;
    const meter = provider.getMeter("hathi", version);
    for (const gauge of gaugesOf(this.#state)) {
      const observe = (result: ObservableResult): void => {
        for (const { value, attributes } of gauge.read()) result.observe(value, { ...system, ...attributes });
      };
      meter
        .createObservableGauge(gauge.name, { unit: gauge.unit, description: gauge.description })
        .addCallback(observe);
    }
    const instruments = makeInstruments(meter);
    this.#known = { provider, instruments };
    return instruments;
  }
}

function failure(error: unknown): Attributes {
  return { "error.type": error instanceof Error ? error.name : "_OTHER" };
}

function makeInstruments(meter: Meter): Instruments {
  const times = (name: string, description: string, bounds: number[]): Histogram =>
    meter.createHistogram(name, { unit: "s", description, advice: { explicitBucketBoundaries: bounds } });
  const sizes = (name: string, description: string): Histogram =>
    meter.createHistogram(name, { unit: "{job}", description, advice: { explicitBucketBoundaries: sizeBounds } });
  const counter = (name: string, description: string, unit = "{job}"): Counter =>
    meter.createCounter(name, { unit, description });
  return {
    operations: times(
      "messaging.client.operation.duration",
      "Time that adding, claiming and settling took.",
      operationBounds,
    ),
    sent: counter("messaging.client.sent.messages", "Jobs that this process added or replaced.", "{message}"),
    consumed: counter("messaging.client.consumed.messages", "Attempts that this process started.", "{message}"),
    runs: times("messaging.process.duration", "Time that a task took for a job.", jobBounds),
    waits: times("hathi.job.wait.duration", "Time from when a job was due to its start.", jobBounds),
    finished: counter("hathi.jobs.finished", "Attempts whose outcome is written, by outcome."),
    recovered: counter("hathi.jobs.recovered", "Jobs that this process took from dead workers."),
    claimErrors: counter("hathi.claim.errors", "Claims that failed.", "{claim}"),
    claimSizes: sizes("hathi.claim.batch.size", "Jobs that claims brought."),
    settleSizes: sizes("hathi.settle.batch.size", "Outcomes that were written together."),
  };
}
