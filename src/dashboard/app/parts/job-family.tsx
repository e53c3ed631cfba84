import type { ComponentChildren, JSX } from "preact";
import type { JobDetails, LinkedJob, RelatedJob } from "../../contract.ts";
import { JobLink } from "./links.tsx";
import { State } from "./state.tsx";

/** What added a job, what it has added, and what else belongs to its trace. */
export function JobFamily({ job }: { readonly job: JobDetails }): JSX.Element {
  return (
    <>
      <Family title="Added by" jobs={job.addedBy} />
      <Family title="It added" jobs={job.added}>
        {job.hasAddedMore && <li class="soft">and more; the first {job.added.length} are shown</li>}
      </Family>
      <Family title="Also in its trace" jobs={job.related} />
    </>
  );
}

interface FamilyProps {
  readonly title: string;
  readonly jobs: readonly (LinkedJob | RelatedJob)[];
  readonly children?: ComponentChildren;
}

const orders = { earlier: "before it", later: "after it" } as const;

function Family({ title, jobs, children }: FamilyProps): JSX.Element | null {
  if (jobs.length === 0) return null;
  return (
    <section class="section">
      <h2 class="section-head">{title}</h2>
      <ul class="family">
        {jobs.map((job) => (
          <li key={job.id}>
            <span class="grow wrap">
              <JobLink id={job.id} /> {job.task}
            </span>
            {"added" in job && <span class="faint">{orders[job.added]}</span>}
            {job.state === null ? <span class="faint">gone</span> : <State of={job.state} />}
          </li>
        ))}
        {children}
      </ul>
    </section>
  );
}
