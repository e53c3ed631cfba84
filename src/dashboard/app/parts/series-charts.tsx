import type { JSX } from "preact";
import type { Series, StartMark } from "../../contract.ts";
import { serverNow } from "../core/clock.ts";
import { formatDuration, formatRate, plural } from "../core/format.ts";
import { useSession } from "../core/session.ts";
import { Chart } from "./chart.tsx";
import { Icon } from "./icon.tsx";

const minuteMs = 60_000;

interface SeriesChartsProps {
  readonly series: Series;
  readonly starts?: readonly StartMark[];
  /** With the chart of how long jobs ran. */
  readonly hasRuns?: boolean;
}

/** What ended and how long it waited, over time, with one crosshair. */
export function SeriesCharts({ series, starts = [], hasRuns = false }: SeriesChartsProps): JSX.Element {
  const { has } = useSession();
  if (!has.metrics && series.succeeded.every((value) => value === null)) {
    return (
      <div class="banner charts-missing">
        <Icon name="gauge" />
        <span>
          No rates and times are recorded. Start your workers with the option <code>metrics</code> to see charts here.
        </span>
      </div>
    );
  }
  const { at, stepMs } = series;
  const marks = starts.map(({ at: startedAt, version, workers }) => ({
    at: startedAt,
    name: version,
    label: `${version === null ? "" : `version ${version}: `}${plural(workers, "worker")} started`,
  }));
  const isOver = (index: number): boolean => at[index]! * 1_000 + stepMs <= serverNow();
  // What has been counted of a step that is not over would look like a slump.
  const perMinute = (values: readonly (number | null)[]): (number | null)[] =>
    values.map((value, index) => (value === null || !isOver(index) ? null : (value * minuteMs) / stepMs));
  return (
    <div class={`charts ${hasRuns ? "is-three" : ""}`}>
      <Chart
        // One of three has less room.
        title={hasRuns ? "Ended per minute" : "Finished and failed per minute"}
        at={at}
        marks={marks}
        format={formatRate}
        lines={[
          { name: "succeeded", values: perMinute(series.succeeded), tone: 1, isFilled: true },
          { name: "failed", values: perMinute(series.failed), tone: 2, dash: "dashed" },
        ]}
      />
      <Chart
        title="Wait"
        at={at}
        marks={marks}
        format={formatDuration}
        lines={percentiles(series.waitP50, series.waitP95, series.waitP99)}
      />
      {hasRuns && (
        <Chart
          title="Run"
          at={at}
          marks={marks}
          format={formatDuration}
          lines={percentiles(series.runP50, series.runP95, series.runP99)}
        />
      )}
    </div>
  );
}

type Values = readonly (number | null)[];

function percentiles(p50: Values, p95: Values, p99: Values) {
  return [
    { name: "p50", values: p50, tone: 3, isFilled: true },
    { name: "p95", values: p95, tone: 1 },
    { name: "p99", values: p99, tone: 4, dash: "dotted" },
  ] as const;
}
