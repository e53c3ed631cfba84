import type { JSX } from "preact";
import { formatNumber } from "../core/format.ts";
import { address, go, Link, usePlace } from "../core/router.tsx";
import { useSession } from "../core/session.ts";
import { useLive } from "../core/use-live.ts";
import { useRowKeys } from "../core/use-row-keys.ts";
import { ErrorTable } from "../parts/error-table.tsx";
import { ClearFilters, TextFilter } from "../parts/filter-bar.tsx";
import { Empty, Frame } from "../parts/frame.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { SpanSelect, useSpan } from "../parts/span-select.tsx";

export function ErrorsPage(): JSX.Element {
  const { query } = usePlace();
  const { has, tasks } = useSession();
  const span = useSpan("1d");
  const task = query.get("task") ?? undefined;
  const live = useLive("errors", { span, task });
  const groups = live.data?.groups ?? [];
  const { cursor } = useRowKeys({
    count: groups.length,
    open: (index) => go(address(`/errors/${groups[index]!.fingerprint}`, { span })),
  });
  return (
    <>
      <PageHead title="Errors">
        <div class="actions">
          <SpanSelect usual="1d" />
        </div>
      </PageHead>
      <div class="filters">
        <TextFilter name="task" label="Task" options={tasks.map(({ name }) => name)} />
        <ClearFilters names={["task"]} />
      </div>
      <Frame live={live}>
        {(data) =>
          data.groups.length === 0 ? (
            <NoErrors hasHistory={has.history} isFiltered={task !== undefined} />
          ) : (
            <>
              <ErrorTable groups={data.groups} cursor={cursor} span={data.span} />
              {data.lookedAt !== null && (
                <p class="list-foot">
                  Jobs and charts show the latest {formatNumber(data.lookedAt)} failures of an error; choose a shorter
                  time to see all of it.
                </p>
              )}
            </>
          )
        }
      </Frame>
    </>
  );
}

function NoErrors({
  hasHistory,
  isFiltered,
}: {
  readonly hasHistory: boolean;
  readonly isFiltered: boolean;
}): JSX.Element {
  if (!hasHistory) {
    return (
      <Empty icon="history" title="No history is kept, so errors are not grouped.">
        <span>
          Start your workers with <code>history: "outcomes"</code> to see them here. Jobs that failed permanently are{" "}
          <Link to="/jobs?state=dead">in the list of jobs</Link>.
        </span>
      </Empty>
    );
  }
  return (
    <Empty icon="succeeded" title="No failures in this time.">
      {isFiltered ? <Link to="/errors">Show all tasks</Link> : <span>Look further back to see older ones.</span>}
    </Empty>
  );
}
