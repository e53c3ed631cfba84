import type { JSX } from "preact";
import type { CronRow } from "../../contract.ts";
import { useCan } from "../core/session.ts";
import { useAction } from "../core/use-action.ts";
import { Button } from "./button.tsx";
import { Icon } from "./icon.tsx";
import { TaskLink } from "./links.tsx";
import { PauseButton } from "./pause-button.tsx";
import { Table } from "./table.tsx";
import { Ago } from "./time.tsx";

interface CronTableProps {
  readonly entries: readonly CronRow[];
  readonly reload: () => void;
  readonly cursor?: number;
}

export function CronTable({ entries, reload, cursor = -1 }: CronTableProps): JSX.Element {
  return (
    <Table
      label="Cron entries"
      rows={entries}
      keyOf={({ identifier }) => identifier}
      rowProps={(_, index) => ({ class: index === cursor ? "is-cursor" : undefined })}
      columns={[
        {
          head: "Entry",
          narrow: "title",
          cell: (entry) => (
            <>
              <span class="task-cell name">
                {entry.identifier}
                {entry.pause && (
                  <span class="tag is-warn" title={entry.pause.reason ?? undefined}>
                    <Icon name="paused" />
                    paused
                  </span>
                )}
                {entry.missedAt !== null && (
                  <span class="tag is-bad">
                    <Icon name="warning" />
                    missed&nbsp;
                    <Ago at={entry.missedAt} />
                  </span>
                )}
              </span>
              {entry.task !== null && entry.task !== entry.identifier && (
                <span class="under">
                  <TaskLink task={entry.task} />
                </span>
              )}
            </>
          ),
        },
        {
          head: "Pattern",
          cell: ({ pattern, timeZone }) => (
            <>
              {pattern === null ? <span class="faint">in the workers' crontab</span> : <code>{pattern}</code>}
              {timeZone !== null && <span class="under">{timeZone}</span>}
            </>
          ),
        },
        { head: "Last run", isNumber: true, cell: ({ lastRunAt }) => <Ago at={lastRunAt} /> },
        { head: "Next run", isNumber: true, cell: ({ next }) => <Ago at={next[0]?.at} /> },
        {
          head: "Next runs in its zone",
          narrow: "hide",
          cell: ({ next }) => (
            <span class="soft mono">
              {next
                .slice(0, 3)
                .map(({ localTime }) => briefTime(localTime))
                .join("  ")}
            </span>
          ),
        },
        {
          head: "·Actions",
          className: "buttons",
          cell: (entry) => <CronActions entry={entry} reload={reload} />,
        },
      ]}
    />
  );
}

/** `2026-01-02T09:00:00+01:00` as `01-02 09:00` */
function briefTime(localTime: string): string {
  return localTime.slice(5, 16).replace("T", " ");
}

function CronActions({ entry, reload }: { readonly entry: CronRow; readonly reload: () => void }): JSX.Element {
  const can = useCan();
  const { run, isBusy } = useAction(reload);
  const { identifier, pause, canRunNow } = entry;
  return (
    <>
      {canRunNow && can("runCron") && (
        <Button
          small
          icon="play"
          disabled={isBusy}
          label={`Run now: ${identifier}`}
          onClick={() => void run("runCron", { identifier })}
        >
          Run now
        </Button>
      )}
      <PauseButton small target={{ kind: "cron", name: identifier }} pause={pause} reload={reload} />
    </>
  );
}
