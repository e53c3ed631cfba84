import type { JSX } from "preact";
import type { TaskDetails } from "../../contract.ts";
import { formatRate, formatShare } from "../core/format.ts";
import { address, Link } from "../core/router.tsx";
import { useCan } from "../core/session.ts";
import { useLive } from "../core/use-live.ts";
import { Amount, Duration } from "../parts/amount.tsx";
import { CronTable } from "../parts/cron-table.tsx";
import { ErrorTable } from "../parts/error-table.tsx";
import { Empty, Frame } from "../parts/frame.tsx";
import { HistoryTable } from "../parts/history-table.tsx";
import { Icon } from "../parts/icon.tsx";
import { LimitList } from "../parts/limit-list.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { PauseButton } from "../parts/pause-button.tsx";
import { PauseNote } from "../parts/pause-note.tsx";
import { SeriesCharts } from "../parts/series-charts.tsx";
import { SpanSelect, useSpan } from "../parts/span-select.tsx";
import { TaskNotes } from "../parts/task-table.tsx";

export function TaskPage({ task }: { readonly task: string }): JSX.Element {
  const span = useSpan();
  const live = useLive("task", { name: task, span });
  const can = useCan();
  const { data, error } = live;
  if (!data && error?.code === "not-found") {
    return (
      <>
        <PageHead title={task} parent={["Tasks", "/tasks"]} />
        <Empty icon="unknown" title={error.message}>
          <Link to="/tasks">Show all tasks</Link>
        </Empty>
      </>
    );
  }
  return (
    <>
      <PageHead title={task} parent={["Tasks", "/tasks"]}>
        {data && <TaskNotes row={data.row} />}
        <div class="actions">
          <SpanSelect />
          {can("add") && (
            <Link class="button" to={address("/jobs/new", { task })}>
              <Icon name="plus" />
              Add a job
            </Link>
          )}
          {data && <PauseButton target={{ kind: "task", name: task }} pause={data.row.pause} reload={live.reload} />}
        </div>
      </PageHead>
      <Frame live={live}>{(details) => <Task details={details} reload={live.reload} />}</Frame>
    </>
  );
}

function Task({ details, reload }: { readonly details: TaskDetails; readonly reload: () => void }): JSX.Element {
  const { row, series, limits, errors, failures, cron } = details;
  const jobs = (state: string): string => address("/jobs", { state, task: row.task });
  return (
    <>
      {row.pause && <PauseNote pause={row.pause} />}
      <div class="figures is-strip">
        <Figure name="running" to={jobs("running")}>
          <Amount of={row.running} />
        </Figure>
        <Figure name="ready" to={jobs("waiting")}>
          <Amount of={row.ready} />
        </Figure>
        <Figure name="later" to={jobs("scheduled")}>
          <Amount of={row.later} />
        </Figure>
        <Figure name="failed" to={jobs("dead")}>
          <Amount of={row.dead} />
        </Figure>
        <Figure name="per minute">{row.perMinute === null ? "–" : formatRate(row.perMinute)}</Figure>
        <Figure name="failing">{row.failureRate === null ? "–" : formatShare(row.failureRate)}</Figure>
        <Figure name="p95 wait">
          <Duration ms={row.waitP95} />
        </Figure>
        <Figure name="p95 run">
          <Duration ms={row.runP95} />
        </Figure>
      </div>
      <SeriesCharts series={series} hasRuns />
      {limits.length > 0 && (
        <section class="section">
          <h2 class="section-head">Limits</h2>
          <LimitList limits={limits} reload={reload} />
        </section>
      )}
      {errors.length > 0 && (
        <section class="section">
          <h2 class="section-head">Errors</h2>
          <ErrorTable groups={errors} />
        </section>
      )}
      {cron.length > 0 && (
        <section class="section">
          <h2 class="section-head">Cron</h2>
          <CronTable entries={cron} reload={reload} />
        </section>
      )}
      {failures.length > 0 && (
        <section class="section">
          <div class="section-head">
            <h2>Recent failures</h2>
            <Link class="more" to={address("/history", { task: row.task })}>
              History of this task
            </Link>
          </div>
          <HistoryTable entries={failures} />
        </section>
      )}
    </>
  );
}

interface FigureProps {
  readonly name: string;
  readonly to?: string;
  readonly children: JSX.Element | string;
}

function Figure({ name, to, children }: FigureProps): JSX.Element {
  const content = (
    <>
      <span class="what">{name}</span>
      <span class="value">{children}</span>
    </>
  );
  return to ? (
    <Link class="figure" to={to}>
      {content}
    </Link>
  ) : (
    <div class="figure">{content}</div>
  );
}
