import type { JSX } from "preact";
import type { JobDetails } from "../../contract.ts";
import { plural } from "../core/format.ts";
import { address, Link } from "../core/router.tsx";
import { QueueLink, TaskLink } from "./links.tsx";
import { Ago } from "./time.tsx";

export function JobFacts({ job }: { readonly job: JobDetails }): JSX.Element {
  const { details, trace } = job;
  const facts: [string, JSX.Element | string | null][] = [
    ["Task", job.task === null ? null : <TaskLink task={job.task} />],
    ["Queue", job.queue === null ? null : <QueueLink queue={job.queue} />],
    ["Key", job.key === null ? null : <Link to={address("/jobs", { key: job.key })}>{job.key}</Link>],
    ["Priority", details && String(details.priority)],
    ["Attempts", details && `${details.attempts} of ${details.maxAttempts}`],
    ["Due", details && <Ago at={details.runAt} />],
    ["Added", details && <Ago at={details.createdAt} />],
    ["Changed", details && <Ago at={details.updatedAt} />],
    ["Running since", details?.lockedAt ? <Ago at={details.lockedAt} /> : null],
    [
      "Worker",
      details?.lockedBy ? (
        <Link class="mono wrap" to={address("/workers", { worker: details.lockedBy })}>
          {details.lockedBy}
        </Link>
      ) : null,
    ],
    ["Finished", job.finishedAt === null ? null : <Ago at={job.finishedAt} />],
    ["Snoozed", details && details.snoozes > 0 ? plural(details.snoozes, "time") : null],
    ["Flags", details && details.flags.length > 0 ? details.flags.join(", ") : null],
    ["Trace", trace && <span class="mono wrap">{trace.traceId}</span>],
  ];
  return (
    <dl class="facts">
      {facts
        .filter(([, value]) => value !== null)
        .map(([name, value]) => (
          <FactRow key={name} name={name}>
            {value}
          </FactRow>
        ))}
    </dl>
  );
}

function FactRow({ name, children }: { name: string; children: JSX.Element | string | null }): JSX.Element {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}
