import type { JSX } from "preact";
import type { PauseInfo } from "../../contract.ts";
import { useLive } from "../core/use-live.ts";
import { Empty, Frame } from "../parts/frame.tsx";
import { LimitList } from "../parts/limit-list.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { nameOf, PauseButton } from "../parts/pause-button.tsx";
import { Table } from "../parts/table.tsx";
import { Ago } from "../parts/time.tsx";

/** What keeps jobs from starting on purpose. */
export function LimitsPage(): JSX.Element {
  const live = useLive("limits", {});
  const everything = live.data?.pauses.find(({ kind }) => kind === "all") ?? null;
  return (
    <>
      <PageHead title="Limits and pauses">
        <div class="actions">{live.data && <PauseEverything pause={everything} reload={live.reload} />}</div>
      </PageHead>
      <Frame live={live}>
        {(data) => (
          <>
            <section>
              <h2 class="section-head">Pauses</h2>
              {data.pauses.length === 0 ? (
                <p class="soft">Nothing is paused.</p>
              ) : (
                <Pauses pauses={data.pauses} reload={live.reload} />
              )}
            </section>
            <section class="section">
              <h2 class="section-head">Limits</h2>
              {data.limits.length === 0 ? (
                <Empty icon="gauge" title="No limits.">
                  <span>A limit keeps a task, or each of its keys, to so many jobs at a time or per minute.</span>
                </Empty>
              ) : (
                <LimitList limits={data.limits} reload={live.reload} />
              )}
            </section>
          </>
        )}
      </Frame>
    </>
  );
}

function PauseEverything({
  pause,
  reload,
}: {
  readonly pause: PauseInfo | null;
  readonly reload: () => void;
}): JSX.Element {
  return <PauseButton target={{ kind: "all" }} pause={pause} reload={reload} text="Pause everything" />;
}

function Pauses({
  pauses,
  reload,
}: {
  readonly pauses: readonly PauseInfo[];
  readonly reload: () => void;
}): JSX.Element {
  return (
    <Table
      label="Pauses"
      rows={pauses}
      keyOf={({ kind, name }) => `${kind} ${name}`}
      columns={[
        { head: "Paused", narrow: "title", cell: (pause) => <span class="name">{nameOf(targetOf(pause))}</span> },
        {
          head: "Reason",
          cell: ({ reason }) => (reason === null ? <span class="faint">–</span> : <span class="wrap">{reason}</span>),
        },
        { head: "By", cell: ({ by }) => by ?? <span class="faint">–</span> },
        { head: "Since", isNumber: true, cell: ({ at }) => <Ago at={at} /> },
        { head: "Ends", isNumber: true, cell: ({ until }) => (until === null ? "by hand" : <Ago at={until} />) },
        {
          head: "·Actions",
          className: "buttons",
          cell: (pause) => <PauseButton small target={targetOf(pause)} pause={pause} reload={reload} />,
        },
      ]}
    />
  );
}

function targetOf({ kind, name }: PauseInfo): { kind: PauseInfo["kind"]; name?: string } {
  return name === null ? { kind } : { kind, name };
}
