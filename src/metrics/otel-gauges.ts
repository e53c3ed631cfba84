import type { Attributes } from "@opentelemetry/api";
import type { TaskFigures } from "../db/statements/metrics.ts";
import type { LoopDelay } from "./loop-delay.ts";
import type { PoolMeter } from "./pool-meter.ts";
import type { Rollup } from "./rollup.ts";
import { connections, slots } from "./write-process.ts";

/** What can be read of this process at any moment. */
export interface ProcessState {
  readonly pools: () => readonly PoolMeter[];
  readonly rollups: () => readonly Rollup[];
  readonly loopDelay: LoopDelay;
}

interface Observation {
  readonly value: number;
  readonly attributes: Attributes;
}

interface Gauge {
  readonly name: string;
  readonly unit: string;
  readonly description: string;
  readonly read: () => readonly Observation[];
}

const states = ["waiting", "scheduled", "running", "dead"] as const;

/** The gauges, which are only read when they are collected. */
export function gaugesOf({ pools, rollups, loopDelay }: ProcessState): Gauge[] {
  const ofPools = (values: (meter: PoolMeter) => Record<string, number>): Observation[] =>
    pools().flatMap((meter) =>
      Object.entries(values(meter)).map(([state, value]) => ({
        value,
        attributes: { "hathi.schema": meter.pool.schema, "hathi.state": state },
      })),
    );
  const known = (): { readonly schema: string; readonly data: NonNullable<Rollup["current"]>["data"] }[] =>
    rollups().flatMap((rollup) => (rollup.current ? [{ schema: rollup.schema, data: rollup.current.data }] : []));
  const ofTasks = (read: (figures: TaskFigures) => readonly Observation[]): Observation[] =>
    known().flatMap(({ schema, data }) =>
      (data.tasks ?? []).flatMap((figures) =>
        read(figures).map(({ value, attributes }) => ({
          value,
          attributes: { "hathi.schema": schema, "messaging.destination.name": figures.task, ...attributes },
        })),
      ),
    );
  const ofLimits = (key: "waiting" | "running"): Observation[] =>
    known().flatMap(({ schema, data }) =>
      (data.limits ?? []).map(({ scope, limit, [key]: value }) => ({
        value,
        attributes: { "hathi.schema": schema, "hathi.limit.scope": scope, "hathi.limit.name": limit },
      })),
    );
  return [
    {
      name: "hathi.slots",
      unit: "{slot}",
      description: "Places for running jobs in this process.",
      read: () => ofPools(slots),
    },
    {
      name: "hathi.pool.connections",
      unit: "{connection}",
      description: "Database connections of this process.",
      read: () => ofPools(connections),
    },
    {
      name: "hathi.event_loop.delay",
      unit: "s",
      description: "How late timers fire in this process, over the last minute or two.",
      read: () =>
        loopDelay.read().map(({ percentile, seconds }) => ({
          value: seconds,
          attributes: { "hathi.percentile": percentile },
        })),
    },
    {
      name: "hathi.jobs",
      unit: "{job}",
      description: "Jobs by task and state.",
      read: () =>
        ofTasks((figures) => states.map((state) => ({ value: figures[state], attributes: { "hathi.state": state } }))),
    },
    {
      name: "hathi.oldest_runnable",
      unit: "s",
      description: "How long the oldest job that could run has been due.",
      read: () => ofTasks(({ oldestSeconds }) => [{ value: oldestSeconds ?? 0, attributes: {} }]),
    },
    {
      name: "hathi.limit.waiting",
      unit: "{job}",
      description: "Jobs that are due, of the tasks that have this limit.",
      read: () => ofLimits("waiting"),
    },
    {
      name: "hathi.limit.running",
      unit: "{job}",
      description: "Jobs that run, of the tasks that have this limit.",
      read: () => ofLimits("running"),
    },
    {
      name: "hathi.dead_tuples",
      unit: "{row}",
      description: "Rows in the table of jobs that vacuum has yet to clear away.",
      read: () =>
        known().flatMap(({ schema, data }) =>
          data.table ? [{ value: data.table.dead, attributes: { "hathi.schema": schema } }] : [],
        ),
    },
    {
      name: "hathi.xmin.age",
      unit: "s",
      description: "Who holds back vacuum, and for how long.",
      read: () =>
        known().flatMap(({ schema, data }) =>
          (data.holders ?? []).flatMap(({ kind, name, seconds }) =>
            seconds === null
              ? []
              : [
                  {
                    value: seconds,
                    attributes: { "hathi.schema": schema, "hathi.holder.kind": kind, "hathi.holder.name": name },
                  },
                ],
          ),
        ),
    },
  ];
}
