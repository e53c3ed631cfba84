import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { AuditRow, Permission } from "../../contract.ts";
import { pageAddress } from "../core/addresses.ts";
import { messageOf, post, read } from "../core/api.ts";
import { formatNumber } from "../core/format.ts";
import { Link, usePlace } from "../core/router.tsx";
import { useCan } from "../core/session.ts";
import { useList } from "../core/use-list.ts";
import { useLive } from "../core/use-live.ts";
import { Button } from "../parts/button.tsx";
import { ClearFilters, SelectFilter, TextFilter } from "../parts/filter-bar.tsx";
import { Empty, Frame } from "../parts/frame.tsx";
import { FreshRows, ListFoot } from "../parts/list-foot.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { type Column, Table, TableSkeleton } from "../parts/table.tsx";
import { Ago } from "../parts/time.tsx";
import { tell } from "../parts/toasts.tsx";

const actionNames = {
  "": "Any action",
  retry: "Retry",
  runNow: "Run now",
  reschedule: "Reschedule",
  cancel: "Cancel",
  fail: "Fail",
  remove: "Remove",
  add: "Add",
  pause: "Pause",
  resume: "Resume",
  runCron: "Run cron entry",
  setLimit: "Change limit",
  clearLimit: "Take back limit",
  unlockWorker: "Free a worker's jobs",
};

/** Who did what, newest first. */
export function AuditPage(): JSX.Element {
  const { query: asked } = usePlace();
  const text = asked.toString();
  const query = useMemo(() => {
    const values = new URLSearchParams(text);
    return { by: values.get("by") ?? undefined, action: values.get("action") ?? undefined };
  }, [text]);
  const live = useLive("audit", query);
  const first = useMemo(() => live.data && { rows: live.data.entries, next: live.data.next }, [live.data]);
  const list = useList({
    name: text,
    first,
    keyOf: (entry: AuditRow) => entry.id,
    rankOf: (entry) => Number(entry.id),
    fetchMore: async (after) => {
      const { entries, next } = await read("audit", { ...query, after });
      return { rows: entries, next };
    },
  });
  const rows = list.rows ?? [];
  const can = useCan();
  return (
    <>
      <PageHead title="Audit" />
      <div class="filters">
        <TextFilter name="by" label="Person" />
        <SelectFilter name="action" label="Action" options={actionNames} />
        <ClearFilters names={["by", "action"]} />
      </div>
      <Frame live={live}>
        {() => {
          if (list.rows === undefined) return <TableSkeleton />;
          if (rows.length === 0) {
            return (
              <Empty icon="person" title={text === "" ? "No changes have been made here yet." : "No actions match."}>
                {text !== "" && <Link to="/audit">Clear the filters</Link>}
              </Empty>
            );
          }
          return (
            <>
              <FreshRows list={list} />
              <Table label="Actions" columns={columns(can, live.reload)} rows={rows} keyOf={({ id }) => id} />
              <ListFoot list={list} noun="action" />
            </>
          );
        }}
      </Frame>
    </>
  );
}

const stateWords: Readonly<Record<AuditRow["state"], string>> = {
  running: "under way",
  done: "done",
  stopped: "stopped",
  failed: "failed",
  interrupted: "interrupted",
};

function columns(can: (permission: Permission) => boolean, reload: () => void): readonly Column<AuditRow>[] {
  const stop = async (id: string): Promise<void> => {
    try {
      await post("bulk/stop", { id });
      reload();
    } catch (error) {
      tell(messageOf(error), { isBad: true });
    }
  };
  return [
    { head: "When", className: "tight", cell: ({ at }) => <Ago at={at} /> },
    { head: "Who", cell: ({ by }) => by ?? <span class="faint">unknown</span> },
    {
      head: "What",
      narrow: "title",
      cell: (entry) => (
        <>
          <span class="name">{actionNames[entry.action as "retry"] ?? entry.action}</span>{" "}
          {entry.link === null ? (
            <span class="wrap">{entry.target}</span>
          ) : (
            <Link class="wrap" to={pageAddress(entry.link)}>
              {entry.target}
            </Link>
          )}
          {entry.message !== null && <span class="under wrap">{entry.message}</span>}
        </>
      ),
    },
    { head: "Changed", isNumber: true, cell: ({ changed }) => formatNumber(changed) },
    {
      head: "State",
      className: "tight",
      cell: (entry) => (
        <span class={entry.state === "failed" || entry.state === "interrupted" ? "bad" : "soft"}>
          {stateWords[entry.state]}
        </span>
      ),
    },
    {
      head: "·Actions",
      className: "buttons",
      cell: (entry) =>
        entry.state === "running" && can(entry.action as Permission) ? (
          <Button small icon="stop" onClick={() => void stop(entry.id)}>
            Stop
          </Button>
        ) : null,
    },
  ];
}
