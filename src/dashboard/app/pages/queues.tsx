import type { JSX } from "preact";
import type { QueueInfo } from "../../contract.ts";
import { queueAddress } from "../core/addresses.ts";
import { useNow } from "../core/clock.ts";
import { formatDuration } from "../core/format.ts";
import { address, go, Link, usePlace } from "../core/router.tsx";
import { useLive } from "../core/use-live.ts";
import { useRowKeys } from "../core/use-row-keys.ts";
import { Amount } from "../parts/amount.tsx";
import { SearchField } from "../parts/filter-bar.tsx";
import { Empty, Frame } from "../parts/frame.tsx";
import { Icon } from "../parts/icon.tsx";
import { JobLink, QueueLink } from "../parts/links.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { PauseButton } from "../parts/pause-button.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { Ago } from "../parts/time.tsx";

export function QueuesPage(): JSX.Element {
  const search = usePlace().query.get("search") ?? undefined;
  const live = useLive("queues", { search });
  const queues = live.data?.queues ?? [];
  const { cursor } = useRowKeys({ count: queues.length, open: (index) => go(queueAddress(queues[index]!.name)) });
  return (
    <>
      <PageHead title="Queues" />
      <div class="filters">
        <SearchField name="search" label="A part of the name" />
      </div>
      <Frame live={live}>
        {(data) =>
          data.queues.length === 0 ? (
            <Empty
              icon="queue"
              title={search ? "No queue has this in its name, or none has jobs." : "No queue has jobs."}
            >
              {search ? (
                <Link to="/queues">Show all</Link>
              ) : (
                <span>Jobs added with a queue's name run one after the other.</span>
              )}
            </Empty>
          ) : (
            <>
              <Table
                label="Queues"
                columns={columns(live.reload)}
                rows={data.queues}
                keyOf={({ name }) => name}
                rowProps={(_, index) => ({ class: index === cursor ? "is-cursor" : undefined })}
              />
              {data.isMore && <p class="list-foot">There are more; search for the others.</p>}
            </>
          )
        }
      </Frame>
    </>
  );
}

function columns(reload: () => void): readonly Column<QueueInfo>[] {
  return [
    {
      head: "Queue",
      narrow: "title",
      cell: ({ name, pause }) => (
        <span class="task-cell name">
          <QueueLink queue={name} />
          {pause && (
            <span class="tag is-warn" title={pause.reason ?? undefined}>
              <Icon name="paused" />
              paused
            </span>
          )}
        </span>
      ),
    },
    {
      head: "Held by",
      cell: (queue) =>
        queue.job ? (
          <>
            <JobLink id={queue.job.id} /> {queue.job.task}
          </>
        ) : queue.heldBy ? (
          <span class="mono">{queue.heldBy}</span>
        ) : (
          <span class="faint">free</span>
        ),
    },
    { head: "For", isNumber: true, cell: ({ heldSince }) => <Held since={heldSince} /> },
    {
      head: "Waiting",
      isNumber: true,
      cell: ({ name, waiting }) => (
        <Link class="plain" to={address("/jobs", { queue: name, state: "waiting" })}>
          <Amount of={waiting} />
        </Link>
      ),
    },
    {
      head: "Later",
      isNumber: true,
      cell: ({ name, scheduled }) => (
        <Link class="plain" to={address("/jobs", { queue: name, state: "scheduled" })}>
          <Amount of={scheduled} />
        </Link>
      ),
    },
    { head: "First is due", isNumber: true, cell: ({ nextRunAt }) => <Ago at={nextRunAt} /> },
    {
      head: "·Actions",
      className: "buttons",
      cell: ({ name, pause }) => <PauseButton small target={{ kind: "queue", name }} pause={pause} reload={reload} />,
    },
  ];
}

const longHoldMs = 10 * 60_000;

/** Amber with a sign if one job has held a queue for long. */
function Held({ since }: { readonly since: string | null }): JSX.Element {
  const now = useNow();
  if (since === null) return <span class="faint">–</span>;
  const ms = Math.max(0, now - Date.parse(since));
  const text = formatDuration(ms < 1_000 ? ms : Math.floor(ms / 1_000) * 1_000);
  return ms > longHoldMs ? (
    <span class="warn">
      <Icon name="warning" /> {text}
    </span>
  ) : (
    <span>{text}</span>
  );
}
