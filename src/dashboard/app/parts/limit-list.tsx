import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { LimitInfo } from "../../contract.ts";
import { formatDuration, formatNumber } from "../core/format.ts";
import { useCan } from "../core/session.ts";
import { useAction } from "../core/use-action.ts";
import { Amount } from "./amount.tsx";
import { Button } from "./button.tsx";
import { LimitDialog } from "./limit-dialog.tsx";
import { TaskLink } from "./links.tsx";
import { Table } from "./table.tsx";

interface LimitListProps {
  readonly limits: readonly LimitInfo[];
  readonly reload: () => void;
}

export function LimitList({ limits, reload }: LimitListProps): JSX.Element {
  return (
    <ul class="workers">
      {limits.map((limit) => (
        <Limit key={limit.name} limit={limit} reload={reload} />
      ))}
    </ul>
  );
}

interface Asked {
  readonly key?: string | undefined;
  readonly override?: number | null;
}

function Limit({ limit, reload }: { readonly limit: LimitInfo; readonly reload: () => void }): JSX.Element {
  const { name, tasks, keyPath, concurrency, rate, used, waiting, keys, isOverridden } = limit;
  const can = useCan();
  const { run } = useAction(reload);
  const [asked, setAsked] = useState<Asked>();
  return (
    <li class="worker">
      <div class="worker-head">
        <h2 class="wrap">{name}</h2>
        <span class="soft">{describeLimit(limit)}</span>
        {isOverridden && <span class="tag">changed here</span>}
        <span class="more row">
          {isOverridden && can("clearLimit") && (
            <Button small onClick={() => void run("clearLimit", { name })} label={`Take back the change of ${name}`}>
              Take back
            </Button>
          )}
          {can("setLimit") && (
            <Button small icon="pencil" label={`Change ${name}`} onClick={() => setAsked({})}>
              Change
            </Button>
          )}
        </span>
      </div>
      <dl class="worker-facts">
        {concurrency !== null && used !== null && (
          <div>
            <dt>Places taken</dt>
            <dd class="slots">
              {keyPath === null ? `${formatNumber(used)} of ${formatNumber(concurrency)}` : formatNumber(used)}
              {keyPath === null && (
                <progress
                  class={`bar ${used >= concurrency ? "is-full" : ""}`}
                  max={concurrency || 1}
                  value={Math.min(used, concurrency)}
                  aria-label="Places taken"
                />
              )}
            </dd>
          </div>
        )}
        {waiting !== null && (
          <div>
            <dt>Waiting</dt>
            <dd>
              <Amount of={waiting} />
            </dd>
          </div>
        )}
        <div>
          <dt>{tasks.length === 1 ? "Task" : "Tasks"}</dt>
          <dd class="task-cell">
            {tasks.map((task) => (
              <TaskLink key={task} task={task} />
            ))}
          </dd>
        </div>
        {rate && (
          <div>
            <dt>Burst</dt>
            <dd>{formatNumber(rate.burst)}</dd>
          </div>
        )}
      </dl>
      {keys.length > 0 && (
        <Table
          label={`Keys of ${name}`}
          rows={keys}
          keyOf={({ key }) => key}
          columns={[
            { head: keyPath ?? "Key", narrow: "title", cell: ({ key }) => <span class="mono wrap">{key}</span> },
            {
              head: "Taken",
              isNumber: true,
              cell: (row) => `${formatNumber(row.used)}${row.override === null ? "" : ` of ${row.override}`}`,
            },
            { head: "Waiting", isNumber: true, cell: (row) => <Amount of={row.waiting} /> },
            {
              head: "·Actions",
              className: "buttons",
              cell: ({ key, override }) => (
                <>
                  {override !== null && can("clearLimit") && (
                    <Button
                      small
                      onClick={() => void run("clearLimit", { name, key })}
                      label={`Take back the limit of ${key}`}
                    >
                      Take back
                    </Button>
                  )}
                  {can("setLimit") && (
                    <Button small label={`Change the limit of ${key}`} onClick={() => setAsked({ key, override })}>
                      Change
                    </Button>
                  )}
                </>
              ),
            },
          ]}
        />
      )}
      {asked && (
        <LimitDialog
          limit={limit}
          keyName={asked.key}
          start={asked.override ?? concurrency}
          onClose={() => setAsked(undefined)}
          onRun={(change) => void run("setLimit", { name, key: asked.key, ...change })}
        />
      )}
    </li>
  );
}

/** "10 at a time and 100 per 1 min for each tenantId" */
function describeLimit({ concurrency, rate, keyPath }: LimitInfo): string {
  const parts = [
    concurrency === null ? null : `${formatNumber(concurrency)} at a time`,
    rate && `${formatNumber(rate.limit)} per ${formatDuration(rate.periodMs)}`,
  ].filter((part) => part !== null);
  return `${parts.join(" and ")}${keyPath === null ? "" : ` for each ${keyPath}`}`;
}
