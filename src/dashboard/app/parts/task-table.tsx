import type { JSX } from "preact";
import type { Span, TaskRow } from "../../contract.ts";
import { taskAddress } from "../core/addresses.ts";
import { formatRate, formatShare } from "../core/format.ts";
import { address, go, Link } from "../core/router.tsx";
import { useRowKeys } from "../core/use-row-keys.ts";
import { Amount, Duration } from "./amount.tsx";
import { Empty } from "./frame.tsx";
import { Icon } from "./icon.tsx";
import { TaskLink } from "./links.tsx";
import { Spark } from "./spark.tsx";
import { type Column, Table } from "./table.tsx";

interface TaskTableProps {
  readonly tasks: readonly TaskRow[];
  readonly span: Span;
}

export function TaskTable({ tasks, span }: TaskTableProps): JSX.Element {
  const { cursor } = useRowKeys({
    count: tasks.length,
    open: (index) => go(taskAddress(tasks[index]!.task)),
  });
  if (tasks.length === 0) {
    return (
      <Empty title="No tasks yet.">
        <span>
          Add a job and its task appears here: <code>npx hathi add hello</code>
        </span>
      </Empty>
    );
  }
  return (
    <Table
      label="Tasks"
      columns={columnsFor(span)}
      rows={tasks}
      keyOf={({ task }) => task}
      rowProps={(_, index) => ({ class: `is-four ${index === cursor ? "is-cursor" : ""}` })}
    />
  );
}

function columnsFor(span: Span): readonly Column<TaskRow>[] {
  const jobs = (row: TaskRow, state: string): string => address("/jobs", { state, task: row.task });
  return [
    {
      head: "Task",
      narrow: "title",
      cell: (row) => (
        <span class="task-cell">
          <TaskLink task={row.task} />
          <TaskNotes row={row} />
        </span>
      ),
    },
    {
      head: "Running",
      isNumber: true,
      cell: (row) => (
        <Link class="plain" to={jobs(row, "running")}>
          <Amount of={row.running} />
        </Link>
      ),
    },
    {
      head: "Ready",
      isNumber: true,
      cell: (row) => (
        <Link class="plain" to={jobs(row, "waiting")}>
          <Amount of={row.ready} />
        </Link>
      ),
    },
    {
      head: "Later",
      isNumber: true,
      cell: (row) => (
        <Link class="plain" to={jobs(row, "scheduled")}>
          <Amount of={row.later} />
        </Link>
      ),
    },
    {
      head: "Failed",
      isNumber: true,
      cell: (row) => (
        <Link class={row.dead.count > 0 ? "bad" : "plain"} to={jobs(row, "dead")}>
          <Amount of={row.dead} />
        </Link>
      ),
    },
    { head: "Per minute", isNumber: true, cell: (row) => orDash(row.perMinute, formatRate) },
    { head: "Failing", isNumber: true, narrow: "hide", cell: (row) => orDash(row.failureRate, formatShare) },
    { head: "p95 wait", isNumber: true, cell: (row) => <Duration ms={row.waitP95} /> },
    { head: "p95 run", isNumber: true, cell: (row) => <Duration ms={row.runP95} /> },
    {
      head: spanNames[span],
      narrow: "hide",
      className: "tight",
      cell: (row) => <Spark values={row.spark} label={`Attempts of ${row.task}`} />,
    },
  ];
}

const spanNames: Readonly<Record<Span, string>> = {
  "15m": "Last 15 min",
  "1h": "Last hour",
  "3h": "Last 3 h",
  "1d": "Last day",
  "3d": "Last 3 d",
  "30d": "Last 30 d",
};

export function TaskNotes({ row }: { readonly row: TaskRow }): JSX.Element {
  return (
    <>
      {row.pause && (
        <span class="tag is-warn" title={row.pause.reason ?? undefined}>
          <Icon name="paused" />
          paused
        </span>
      )}
      {row.isFallingBehind && (
        <span class="tag is-warn">
          <Icon name="warning" />
          falling behind
        </span>
      )}
      {row.workers === 0 && (
        <span class="tag is-warn">
          <Icon name="warning" />
          no worker
        </span>
      )}
    </>
  );
}

function orDash(value: number | null, format: (value: number) => string): JSX.Element {
  if (value === null || value === 0) return <span class="faint">{value === null ? "–" : format(0)}</span>;
  return <span>{format(value)}</span>;
}
