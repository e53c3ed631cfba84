import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { LimitHoldInfo, LimitInfo } from "../../contract.ts";
import { formatDuration, formatNumber } from "../core/format.ts";
import { useCan } from "../core/session.ts";
import { useAction } from "../core/use-action.ts";
import { Amount, formatCount } from "./amount.tsx";
import { Button } from "./button.tsx";
import { LimitDialog, type LimitQuestion } from "./limit-dialog.tsx";
import { LimitKeys, nameOfKey } from "./limit-keys.tsx";
import { TaskLink } from "./links.tsx";
import { Ago } from "./time.tsx";

interface LimitListProps {
  readonly limits: readonly LimitInfo[];
  readonly reload: () => void;
}

export function LimitList({ limits, reload }: LimitListProps): JSX.Element {
  return (
    <ul class="workers">
      {limits.map((limit) => (
        <Limit
          key={JSON.stringify([limit.name, limit.isShared, limit.kind, limit.path])}
          limit={limit}
          reload={reload}
        />
      ))}
    </ul>
  );
}

function Limit({ limit, reload }: { readonly limit: LimitInfo; readonly reload: () => void }): JSX.Element {
  const { name, kind, path, keys, holds, isChanged } = limit;
  const id = { name, kind, path };
  const said = `${name}, ${describeLimit(limit)}`;
  const can = useCan();
  const { run } = useAction(reload);
  const [asked, setAsked] = useState<LimitQuestion>();
  return (
    <li class="worker">
      <div class="worker-head">
        <h2 class="wrap">{name}</h2>
        <span class="soft">{describeLimit(limit)}</span>
        {limit.isShared && <span class="tag">shared</span>}
        {isChanged && <span class="tag">changed at run time</span>}
        <span class="more row">
          {isChanged && can("clearLimit") && (
            <Button small onClick={() => void run("clearLimit", id)} label={`Take back the change of ${said}`}>
              Take back
            </Button>
          )}
          {path.length > 0 && can("setLimit") && (
            <Button small label={`Set a key of ${said}`} onClick={() => setAsked("newKey")}>
              Set a key
            </Button>
          )}
          {can("setLimit") && (
            <Button small icon="pencil" label={`Change ${said}`} onClick={() => setAsked("itself")}>
              Change
            </Button>
          )}
        </span>
      </div>
      <LimitFacts limit={limit} />
      <Waiting limit={limit} />
      {holds.map((hold, index) => (
        <Hold key={index} hold={hold} />
      ))}
      {keys.length > 0 && (
        <LimitKeys limit={limit} onChange={setAsked} onClear={({ key }) => void run("clearLimit", { ...id, key })} />
      )}
      {asked && (
        <LimitDialog
          limit={limit}
          asked={asked}
          onClose={() => setAsked(undefined)}
          onRun={(change) => void run("setLimit", { ...id, ...change })}
        />
      )}
    </li>
  );
}

function LimitFacts({ limit }: { readonly limit: LimitInfo }): JSX.Element {
  const { kind, path, tasks, limit: places, running } = limit;
  const most = kind === "concurrency" && path.length === 0 ? places : null;
  return (
    <dl class="worker-facts">
      <div>
        <dt>Running</dt>
        <dd class="slots">
          {most === null ? <Amount of={running} /> : `${formatCount(running)} of ${formatNumber(most)}`}
          {most !== null && (
            <progress
              class={`bar ${running.count >= most ? "is-full" : ""}`}
              max={most || 1}
              value={Math.min(running.count, most)}
              aria-label="Places taken"
            />
          )}
        </dd>
      </div>
      <div>
        <dt>Waiting</dt>
        <dd>
          <Amount of={limit.waiting} />
        </dd>
      </div>
      <div>
        <dt>{tasks.length === 1 ? "Task" : "Tasks"}</dt>
        <dd class="task-cell">
          {tasks.map((task) => (
            <TaskLink key={task} task={task} />
          ))}
        </dd>
      </div>
      {kind === "rate" && (
        <div>
          <dt>Burst</dt>
          <dd>{formatNumber(limit.burst)}</dd>
        </div>
      )}
    </dl>
  );
}

/** Whose jobs come next, with the most jobs first. */
function Waiting({ limit: { waitingKeys, waitingLookedAt } }: { readonly limit: LimitInfo }): JSX.Element | null {
  if (waitingKeys.length === 0) return null;
  return (
    <p class="soft wrap">
      Among the next {formatNumber(waitingLookedAt)} jobs:{" "}
      {waitingKeys.map(({ key, jobs }, index) => (
        <span key={index}>
          {index > 0 && ", "}
          <span class="mono">{nameOfKey(key)}</span> {formatNumber(jobs)}
        </span>
      ))}
    </p>
  );
}

function Hold({ hold: { key, until, reason } }: { readonly hold: LimitHoldInfo }): JSX.Element {
  return (
    <p class="soft wrap">
      {key === null ? "Held back" : `${nameOfKey(key)}: held back`}, ends <Ago at={until} />
      {reason !== null && `: ${reason}`}
    </p>
  );
}

/** "10 at a time for each tenantId", "100 per 60 s", "turns by tenantId" */
function describeLimit({ kind, path, limit, periodMs }: LimitInfo): string {
  const by = path.join(".");
  if (kind === "fair" || limit === null) return `turns by ${by}`;
  const most = `${formatNumber(limit)} ${kind === "rate" ? `per ${formatDuration(periodMs ?? 0)}` : "at a time"}`;
  return by === "" ? most : `${most} for each ${by}`;
}
