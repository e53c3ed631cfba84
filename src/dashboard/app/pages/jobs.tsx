import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { type JobQuery, type JobRow, jobStates } from "../../contract.ts";
import { jobAddress } from "../core/addresses.ts";
import { read } from "../core/api.ts";
import { serverNow } from "../core/clock.ts";
import { address, go, Link, usePlace } from "../core/router.tsx";
import { useCan, useSession } from "../core/session.ts";
import { sinceOf } from "../core/time-range.ts";
import { useList } from "../core/use-list.ts";
import { useLive } from "../core/use-live.ts";
import { useRowKeys } from "../core/use-row-keys.ts";
import { BulkBar } from "../parts/bulk-bar.tsx";
import { ClearFilters, FixedFilter, SearchField, TextFilter, TimeFilter } from "../parts/filter-bar.tsx";
import { Frame } from "../parts/frame.tsx";
import { Icon } from "../parts/icon.tsx";
import { jobColumns } from "../parts/job-columns.tsx";
import { FreshRows, ListFoot } from "../parts/list-foot.tsx";
import { NoJobs } from "../parts/no-jobs.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { StateTabs } from "../parts/state-tabs.tsx";
import { Table, TableSkeleton } from "../parts/table.tsx";

const filterNames = ["search", "task", "queue", "key", "since", "until", "error"] as const;

export function JobsPage(): JSX.Element {
  const { query: asked } = usePlace();
  const session = useSession();
  const can = useCan();
  const text = asked.toString();
  const query = useMemo(() => jobQueryOf(new URLSearchParams(text)), [text]);
  const live = useLive("jobs", { ...query });
  const first = useMemo(
    () => live.data && { rows: live.data.jobs, next: live.data.next, lookedAt: live.data.lookedAt },
    [live.data],
  );
  const list = useList({
    name: text,
    first,
    keyOf: (job: JobRow) => job.id,
    rankOf: (job) => Number(job.id),
    fetchMore: async (after) => {
      const { jobs, next, lookedAt } = await read("jobs", { ...query, after });
      return { rows: jobs, next, lookedAt };
    },
  });
  const rows = list.rows ?? [];
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  useEffect(() => setSelected(new Set()), [text]);
  const toggle = (id: string): void =>
    setSelected((before) => {
      const next = new Set(before);
      if (!next.delete(id)) next.add(id);
      return next;
    });
  const { cursor } = useRowKeys({
    count: rows.length,
    open: (index) => go(jobAddress(rows[index]!.id)),
    select: (index) => toggle(rows[index]!.id),
  });
  const isFiltered = filterNames.some((name) => query[name] !== undefined);

  return (
    <>
      <PageHead title="Jobs">
        <div class="actions">
          {can("add") && (
            <Link class="button" to={address("/jobs/new", { task: query.task })}>
              <Icon name="plus" />
              Add a job
            </Link>
          )}
        </div>
      </PageHead>
      <StateTabs query={query} />
      <div class="filters">
        <SearchField name="search" label="Search payload, key, task or error" />
        <TextFilter name="task" label="Task" options={session.tasks.map(({ name }) => name)} />
        <TextFilter name="queue" label="Queue" />
        <TextFilter name="key" label="Key" />
        <TimeFilter label="Added" />
        <FixedFilter name="error">Error {query.error?.slice(0, 8)}</FixedFilter>
        <ClearFilters names={filterNames} />
      </div>
      <Frame live={live}>
        {() => {
          if (list.rows === undefined || (rows.length === 0 && list.isLoading)) return <TableSkeleton />;
          if (rows.length === 0) return <NoJobs query={query} isFiltered={isFiltered} />;
          return (
            <>
              <FreshRows list={list} />
              <Table
                label="Jobs"
                columns={jobColumns({ selected, rows, gone: list.gone, setSelected, toggle })}
                rows={rows}
                keyOf={({ id }) => id}
                rowProps={({ id }, index) => ({
                  class:
                    [index === cursor && "is-cursor", list.gone.has(id) && "is-gone"].filter(Boolean).join(" ") ||
                    undefined,
                  "aria-selected": selected.has(id),
                })}
              />
              <ListFoot list={list} noun="job" />
              <BulkBar
                jobs={rows.filter(({ id }) => selected.has(id))}
                query={query}
                hasMore={list.hasMore}
                isWhole={selected.size === rows.length}
                onDone={live.reload}
                onClear={() => setSelected(new Set())}
                onSelectShown={() => setSelected(new Set(rows.map(({ id }) => id)))}
              />
            </>
          );
        }}
      </Frame>
    </>
  );
}

function jobQueryOf(asked: URLSearchParams): JobQuery {
  const value = (name: string): string | undefined => asked.get(name) || undefined;
  return {
    state: jobStates.find((state) => state === asked.get("state")),
    task: value("task"),
    queue: value("queue"),
    key: value("key"),
    search: value("search"),
    error: value("error"),
    since: sinceOf(asked.get("since"), serverNow()),
    until: value("until"),
  };
}
