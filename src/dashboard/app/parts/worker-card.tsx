import type { JSX } from "preact";
import type { WorkerRow } from "../../contract.ts";
import { formatDuration, formatNumber, plural } from "../core/format.ts";
import { Icon } from "./icon.tsx";
import { JobLink, TaskLink } from "./links.tsx";
import { PauseButton } from "./pause-button.tsx";
import { State } from "./state.tsx";
import { Ago } from "./time.tsx";
import { UnlockButton } from "./unlock-button.tsx";

const slowLoopMs = 200;

interface WorkerProps {
  readonly worker: WorkerRow;
  readonly isAsked: boolean;
  readonly reload: () => void;
}

/** One worker: how it is, and what it runs. */
export function WorkerCard({ worker, isAsked, reload }: WorkerProps): JSX.Element {
  const { id, life, hostname, pid, version, appVersion, slots, jobs, loopDelayMs, overruns, pause, running, tasks } =
    worker;
  return (
    <li class={`worker ${isAsked ? "is-asked" : ""}`}>
      <div class="worker-head">
        <State of={life} label={worker.isStopping ? "Stopping" : undefined} />
        <h2 class="wrap">{hostname === null ? id : hostname}</h2>
        <span class="faint">
          {pid !== null && `process ${pid}`}
          {appVersion !== null && ` · version ${appVersion}`}
          {version !== null && ` · Hathi ${version}`}
        </span>
        {pause && (
          <span class="tag is-warn" title={pause.reason ?? undefined}>
            <Icon name="paused" />
            {pause.kind === "worker" ? "draining" : "everything is paused"}
          </span>
        )}
        <span class="more row">
          {life !== "silent" && (
            <PauseButton small word="Drain" target={{ kind: "worker", name: id }} pause={pause} reload={reload} />
          )}
          {life !== "alive" && <UnlockButton worker={worker} reload={reload} />}
        </span>
      </div>
      <dl class="worker-facts">
        <Fact name="Heartbeat">
          <Ago at={worker.lastHeartbeatAt} />
        </Fact>
        <Fact name="Started">
          <Ago at={worker.startedAt} />
        </Fact>
        <Fact name="Slots busy">
          {slots === null ? (
            plural(jobs, "job")
          ) : (
            <span class="slots">
              {formatNumber(jobs)} of {formatNumber(slots)}
              <progress class="bar" max={slots} value={Math.min(jobs, slots)} aria-label="Slots busy" />
            </span>
          )}
        </Fact>
        <Fact name="Loop delay">
          {loopDelayMs === null ? (
            <span class="faint">–</span>
          ) : loopDelayMs > slowLoopMs ? (
            <span class="warn">
              <Icon name="warning" /> {formatDuration(loopDelayMs)}
            </span>
          ) : (
            formatDuration(loopDelayMs)
          )}
        </Fact>
        <Fact name="Overruns">
          {overruns > 0 ? (
            <span class="warn">
              <Icon name="warning" /> {overruns}
            </span>
          ) : (
            <span class="faint">0</span>
          )}
        </Fact>
        <Fact name="Oldest job">
          <Ago at={worker.oldestLockAt} />
        </Fact>
        <Fact name="Id">
          <span class="mono wrap">{id}</span>
        </Fact>
      </dl>
      {running.length > 0 && (
        <ul class="worker-jobs" aria-label="What runs now">
          {running.map((job) => (
            <li key={job.id}>
              <JobLink id={job.id} />
              <TaskLink task={job.task} />
              <span class="faint">
                <Ago at={job.since} />
              </span>
              {job.progress?.percent != null && (
                <progress class="bar" max={100} value={job.progress.percent} aria-label="Progress" />
              )}
            </li>
          ))}
        </ul>
      )}
      {tasks !== null && tasks.length > 0 && (
        <details class="faint">
          <summary>{plural(tasks.length, "task")}</summary>
          <span class="wrap">{tasks.join(", ")}</span>
        </details>
      )}
    </li>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children: JSX.Element | string }): JSX.Element {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
