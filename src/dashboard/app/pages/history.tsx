import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { HistoryRow } from "../../contract.ts";
import { jobAddress } from "../core/addresses.ts";
import { read } from "../core/api.ts";
import { serverNow } from "../core/clock.ts";
import { go, Link, usePlace } from "../core/router.tsx";
import { useSession } from "../core/session.ts";
import { sinceOf } from "../core/time-range.ts";
import { useList } from "../core/use-list.ts";
import { useLive } from "../core/use-live.ts";
import { useRowKeys } from "../core/use-row-keys.ts";
import { ClearFilters, FixedFilter, SelectFilter, TextFilter, TimeFilter } from "../parts/filter-bar.tsx";
import { Empty, Frame } from "../parts/frame.tsx";
import { HistoryTable } from "../parts/history-table.tsx";
import { FreshRows, ListFoot } from "../parts/list-foot.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { TableSkeleton } from "../parts/table.tsx";

const filterNames = ["task", "queue", "key", "outcome", "error", "since", "until"];
const outcomeNames = {
  "": "Any outcome",
  succeeded: "Succeeded",
  failed: "Failed, to be retried",
  permanentlyFailed: "Permanently failed",
  cancelled: "Cancelled",
  snoozed: "Snoozed",
};

/** How attempts ended, newest first. */
export function HistoryPage(): JSX.Element {
  const { query: asked } = usePlace();
  const { tasks, has } = useSession();
  const text = asked.toString();
  const query = useMemo(() => {
    const values = new URLSearchParams(text);
    const plain = filterNames.map((name) => [name, values.get(name) ?? undefined]);
    return { ...Object.fromEntries(plain), since: sinceOf(values.get("since"), serverNow()) } as Record<
      string,
      string | undefined
    >;
  }, [text]);
  const live = useLive("history", query);
  const first = useMemo(() => live.data && { rows: live.data.entries, next: live.data.next }, [live.data]);
  const list = useList({
    name: text,
    first,
    keyOf: (entry: HistoryRow) => `${entry.id} ${entry.attempt} ${entry.at}`,
    rankOf: (entry) => Date.parse(entry.at),
    fetchMore: async (after) => {
      const { entries, next } = await read("history", { ...query, after });
      return { rows: entries, next };
    },
  });
  const rows = list.rows ?? [];
  const { cursor } = useRowKeys({ count: rows.length, open: (index) => go(jobAddress(rows[index]!.id)) });
  return (
    <>
      <PageHead title="History" />
      <div class="filters">
        <TextFilter name="task" label="Task" options={tasks.map(({ name }) => name)} />
        <TextFilter name="queue" label="Queue" />
        <TextFilter name="key" label="Key" />
        <SelectFilter name="outcome" label="Outcome" options={outcomeNames} />
        <TimeFilter label="Ended" />
        <FixedFilter name="error">Error {query.error?.slice(0, 8)}</FixedFilter>
        <ClearFilters names={filterNames} />
      </div>
      <Frame live={live}>
        {() => {
          if (list.rows === undefined) return <TableSkeleton />;
          if (rows.length === 0) return <NoHistory hasHistory={has.history} isFiltered={text !== ""} />;
          return (
            <>
              <FreshRows list={list} />
              <HistoryTable entries={rows} cursor={cursor} />
              <ListFoot list={list} noun="attempt" />
            </>
          );
        }}
      </Frame>
    </>
  );
}

function NoHistory({
  hasHistory,
  isFiltered,
}: {
  readonly hasHistory: boolean;
  readonly isFiltered: boolean;
}): JSX.Element {
  if (isFiltered) {
    return (
      <Empty icon="search" title="No attempts match.">
        <Link to="/history">Clear the filters</Link>
      </Empty>
    );
  }
  if (hasHistory) return <Empty icon="history" title="No job has ended yet." />;
  return (
    <Empty icon="history" title="No history is kept.">
      <span>
        Start your workers with <code>history: "outcomes"</code> to see here how jobs ended.
      </span>
    </Empty>
  );
}
