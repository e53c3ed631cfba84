import type { JSX } from "preact";
import type { JobRow } from "../../contract.ts";
import { jobAddress } from "../core/addresses.ts";
import { changeQuery, Link } from "../core/router.tsx";
import { Icon } from "./icon.tsx";
import { JobProgress } from "./job-progress.tsx";
import { State } from "./state.tsx";
import type { Column } from "./table.tsx";
import { Ago } from "./time.tsx";

interface Selection {
  readonly rows: readonly JobRow[];
  readonly gone: ReadonlySet<string>;
  readonly selected: ReadonlySet<string>;
  readonly setSelected: (selected: ReadonlySet<string>) => void;
  readonly toggle: (id: string) => void;
}

export function jobColumns({ selected, rows, gone, setSelected, toggle }: Selection): readonly Column<JobRow>[] {
  const isAll = rows.length > 0 && selected.size === rows.length;
  return [
    {
      head: "·Selected",
      className: "tight select-cell",
      headCell: () => (
        <input
          type="checkbox"
          class="check"
          aria-label="Select all jobs shown"
          checked={isAll}
          ref={(box) => {
            if (box) box.indeterminate = selected.size > 0 && !isAll;
          }}
          onChange={() => setSelected(new Set(isAll ? [] : rows.map(({ id }) => id)))}
        />
      ),
      cell: ({ id }) => (
        <input
          type="checkbox"
          class="check"
          aria-label={`Select job ${id}`}
          checked={selected.has(id)}
          onChange={() => toggle(id)}
        />
      ),
    },
    {
      head: "Job",
      narrow: "title",
      cell: (job) => (
        <span class="job-cell">
          <Link class="name wrap" to={jobAddress(job.id)}>
            {job.task} <span class="faint mono">#{job.id}</span>
          </Link>
          {(job.key !== null || job.queue !== null) && (
            <span class="under wrap">
              {job.key !== null && (
                <Link class="plain" to={changeQuery({ key: job.key })} title="Jobs with this key">
                  {job.key}
                </Link>
              )}
              {job.key !== null && job.queue !== null && " · "}
              {job.queue !== null && (
                <Link class="plain" to={changeQuery({ queue: job.queue })} title="Jobs of this queue">
                  queue {job.queue}
                </Link>
              )}
            </span>
          )}
        </span>
      ),
    },
    {
      head: "State",
      className: "tight",
      narrow: "bare",
      cell: (job) => <JobState job={job} isGone={gone.has(job.id)} />,
    },
    {
      head: "Attempts",
      isNumber: true,
      cell: ({ attempts, maxAttempts }) => (
        <span class={attempts === 0 ? "faint" : undefined}>
          {attempts} of {maxAttempts}
        </span>
      ),
    },
    {
      head: "Priority",
      isNumber: true,
      narrow: "hide",
      cell: ({ priority }) => <span class={priority === 0 ? "faint" : undefined}>{priority}</span>,
    },
    { head: "Added", isNumber: true, cell: ({ createdAt }) => <Ago at={createdAt} /> },
    { head: "Due", isNumber: true, cell: ({ runAt }) => <Ago at={runAt} /> },
    {
      head: "Last error",
      className: "limited clip",
      narrow: "bare",
      cell: ({ lastError }) =>
        lastError === null ? null : (
          <span class="soft" title={lastError}>
            {lastError}
          </span>
        ),
    },
  ];
}

function JobState({ job, isGone }: { readonly job: JobRow; readonly isGone: boolean }): JSX.Element {
  if (isGone) return <State of="finished" label="Not here any more" />;
  if (job.isCancelled) return <State of="cancelled" label={job.state === "running" ? "Cancelling" : "Cancelled"} />;
  if (job.pause) return <State of="paused" />;
  if (job.progress && job.state === "running") return <JobProgress progress={job.progress} />;
  return (
    <span class="row">
      <State of={job.state} />
      {job.snoozes > 0 && (
        <span class="tag" title={`Snoozed ${job.snoozes} times`}>
          <Icon name="snoozed" />
          {job.snoozes}
        </span>
      )}
    </span>
  );
}
