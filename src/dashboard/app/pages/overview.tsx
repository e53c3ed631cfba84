import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Overview, Series, Warning } from "../../contract.ts";
import { pageAddress } from "../core/addresses.ts";
import { formatDuration, formatNumber, formatRate, formatShare } from "../core/format.ts";
import { address, Link } from "../core/router.tsx";
import { useSession } from "../core/session.ts";
import { useLive } from "../core/use-live.ts";
import { Frame } from "../parts/frame.tsx";
import { Icon } from "../parts/icon.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { SeriesCharts } from "../parts/series-charts.tsx";
import { SpanSelect, useSpan } from "../parts/span-select.tsx";
import { Spark } from "../parts/spark.tsx";
import { TaskTable } from "../parts/task-table.tsx";

export function OverviewPage(): JSX.Element {
  const span = useSpan();
  const live = useLive("overview", { span });
  return (
    <>
      <div class="off-screen">
        <PageHead title="Overview" />
      </div>
      <Frame live={live} skeleton={<OverviewSkeleton />}>
        {(data) => (
          <>
            <div class="health">
              <Health data={data} />
              <SpanSelect />
            </div>
            <Figures data={data} />
            <SeriesCharts series={data.series} starts={data.starts} />
            <section class="section">
              <div class="section-head">
                <h2>Tasks</h2>
                <Link class="more" to="/tasks">
                  All tasks
                </Link>
              </div>
              <TaskTable tasks={data.tasks} span={data.span} />
            </section>
          </>
        )}
      </Frame>
    </>
  );
}

const shownWarnings = 3;

/** Is all well? If not, what is wrong, most urgent first. */
function Health({ data }: { readonly data: Overview }): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const { warnings, summary } = data;
  const shown = isOpen ? warnings : warnings.slice(0, shownWarnings);
  const rest = warnings.length - shown.length;
  return (
    <ul class="grow" aria-label="Health">
      {warnings.length === 0 && (
        <li>
          <Icon name="succeeded" />
          <span>{summary}</span>
        </li>
      )}
      {shown.map((warning) => (
        <WarningLine key={warning.kind + warning.message} warning={warning} />
      ))}
      {rest > 0 && (
        <li>
          <button type="button" class="button is-link" onClick={() => setOpen(true)}>
            {rest} more
          </button>
        </li>
      )}
    </ul>
  );
}

function WarningLine({ warning }: { readonly warning: Warning }): JSX.Element {
  const { severity, message, link } = warning;
  return (
    <li data-level={severity === "problem" ? "bad" : "warn"}>
      <Icon name={severity === "problem" ? "failed" : "warning"} />
      <span class="wrap">
        <span class="off-screen">{severity === "problem" ? "Problem: " : "Warning: "}</span>
        {message} {link && <Link to={pageAddress(link)}>Show</Link>}
      </span>
    </li>
  );
}

function Figures({ data }: { readonly data: Overview }): JSX.Element {
  const { figures, series, workers } = data;
  const { has } = useSession();
  const all = workers.alive + workers.silent;
  const ended = sumOf(series);
  return (
    <div class="figures">
      <Link class="figure" to="/history">
        <span class="what">finished</span>
        <span class="value">
          {figures.finishedPerMinute === null ? "–" : formatRate(figures.finishedPerMinute)}
          <small>/min</small>
        </span>
        <span class="foot">
          <Spark values={ended} label="Finished" width={140} height={24} />
        </span>
      </Link>
      <Link class="figure" to="/errors">
        <span class="what">failed</span>
        <span class="value">{figures.failureRate === null ? "–" : formatShare(figures.failureRate)}</span>
        <span class="foot">
          <Spark values={series.failed} label="Failed" width={140} height={24} isBad />
        </span>
      </Link>
      <Link class="figure" to={address("/jobs", { state: "waiting" })}>
        <span class="what">p95 wait</span>
        <span class="value">{figures.waitP95 === null ? "–" : formatDuration(figures.waitP95)}</span>
        <span class="foot">
          {has.metrics ? <Spark values={series.waitP95} label="Wait" width={140} height={24} /> : "no metrics recorded"}
        </span>
      </Link>
      <Link class="figure" to="/workers">
        <span class="what">workers alive</span>
        <span class="value">
          {workers.alive}
          <small>of {all}</small>
        </span>
        <span class="foot">
          {workers.slots > 0
            ? `${formatNumber(workers.busy)} of ${formatNumber(workers.slots)} slots busy`
            : `${formatNumber(workers.busy)} jobs running`}
        </span>
      </Link>
    </div>
  );
}

/** Of the steps that are over. */
function sumOf({ succeeded, failed }: Series): (number | null)[] {
  return succeeded.slice(0, -1).map((value, index) => {
    const other = failed[index] ?? null;
    return value === null && other === null ? null : (value ?? 0) + (other ?? 0);
  });
}

function OverviewSkeleton(): JSX.Element {
  return (
    <div class="overview-skeleton" role="status" aria-label="Loading">
      <span class="skeleton" />
      <div class="figures">
        {[1, 2, 3, 4].map((figure) => (
          <div key={figure} class="figure">
            <span class="skeleton" />
            <span class="skeleton" />
          </div>
        ))}
      </div>
      <div class="charts">
        <span class="skeleton is-chart" />
        <span class="skeleton is-chart" />
      </div>
    </div>
  );
}
