import type { JSX } from "preact";
import type { JobDetails } from "../../contract.ts";
import { pageAddress } from "../core/addresses.ts";
import { formatNumber, plural } from "../core/format.ts";
import { Link } from "../core/router.tsx";
import { useLive } from "../core/use-live.ts";
import { CopyButton } from "../parts/copy-button.tsx";
import { Empty, Frame } from "../parts/frame.tsx";
import { JobActions } from "../parts/job-actions.tsx";
import { JobFacts } from "../parts/job-facts.tsx";
import { JobFamily } from "../parts/job-family.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { PayloadTree } from "../parts/payload-tree.tsx";
import { Stack } from "../parts/stack.tsx";
import { lookOf, State } from "../parts/state.tsx";
import { Ago } from "../parts/time.tsx";
import { Timeline } from "../parts/timeline.tsx";

export function JobPage({ id }: { readonly id: string }): JSX.Element {
  const live = useLive("job", { id });
  const { data, error } = live;
  if (!data && error?.code === "not-found") {
    return (
      <>
        <PageHead title={`Job ${id}`} parent={["Jobs", "/jobs"]} />
        <Empty icon="unknown" title={error.message}>
          <span>
            Finished jobs are kept if <code>history</code> is on. <Link to="/jobs">Show the jobs there are</Link>
          </span>
        </Empty>
      </>
    );
  }
  return (
    <>
      <PageHead
        title={`Job ${id}${data?.task ? ` ${data.task}` : ""}`}
        parent={["Jobs", "/jobs"]}
        heading={
          <>
            <span class="mono-id">#{id}</span> {data?.task}
          </>
        }
      >
        {data && <JobActions job={data} reload={live.reload} />}
      </PageHead>
      <Frame live={live}>{(job) => <Job job={job} />}</Frame>
    </>
  );
}

function Job({ job }: { readonly job: JobDetails }): JSX.Element {
  return (
    <>
      <Why job={job} />
      <div class="job-columns">
        <div>
          <section class="section">
            <h2 class="section-head">Timeline</h2>
            <Timeline entries={job.timeline} />
          </section>
          <Payload job={job} />
          {job.result !== undefined && job.result !== null && (
            <section class="section">
              <h2 class="section-head">Result</h2>
              <div class="panel">
                <PayloadTree value={job.result} label="Result" />
              </div>
            </section>
          )}
          {job.lastError !== null && !job.timeline.some(({ error }) => error !== null) && (
            <section class="section">
              <h2 class="section-head">Last error</h2>
              <Stack text={job.lastError} />
            </section>
          )}
        </div>
        <aside>
          <section class="section">
            <h2 class="section-head">Details</h2>
            <JobFacts job={job} />
          </section>
          <JobFamily job={job} />
        </aside>
      </div>
    </>
  );
}

/** Why it is where it is: the first thing anybody asks. */
function Why({ job }: { readonly job: JobDetails }): JSX.Element {
  const state = job.outcome ?? (job.details?.pause ? "paused" : job.state);
  const progress = job.details?.progress;
  return (
    <div class="why" data-tone={lookOf(state).tone} role="status">
      <State of={state} />
      <div class="grow">
        <ul>
          {job.why.map(({ kind, message, link }) => (
            <li key={kind + message} class="wrap">
              {message} {link && <Link to={pageAddress(link)}>Show</Link>}
            </li>
          ))}
        </ul>
        {progress && job.state === "running" && (
          <div class="why-progress">
            {progress.percent !== null && (
              <progress class="bar" max={100} value={progress.percent} aria-label="Progress" />
            )}
            <span class="soft">
              {progress.percent !== null && `${formatNumber(progress.percent)} % `}
              {progress.message}{" "}
              <span class="faint">
                <Ago at={progress.at} />
              </span>
            </span>
          </div>
        )}
      </div>
    </div>
  );
}

function Payload({ job }: { readonly job: JobDetails }): JSX.Element {
  return (
    <section class="section">
      <div class="section-head">
        <h2>Payload</h2>
        {job.payloadBytes !== null && <span class="faint">{plural(job.payloadBytes, "byte")}</span>}
        {job.payload !== undefined && (
          <span class="more">
            <CopyButton text={JSON.stringify(job.payload, null, 2)} />
          </span>
        )}
      </div>
      {job.payload === undefined ? (
        <p class="soft">{job.state === "finished" ? "It was not kept." : "It is too large to show."}</p>
      ) : (
        <div class="panel">
          <PayloadTree value={job.payload} label="Payload" />
        </div>
      )}
    </section>
  );
}
