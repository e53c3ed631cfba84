import type { JSX } from "preact";
import type { JobQuery } from "../../contract.ts";
import { address, Link } from "../core/router.tsx";
import { Empty } from "./frame.tsx";
import { lookOf } from "./state.tsx";

/** Why a list of jobs is empty, and the way out. */
export function NoJobs({ query, isFiltered }: { readonly query: JobQuery; readonly isFiltered: boolean }): JSX.Element {
  if (isFiltered) {
    return (
      <Empty icon="search" title="No jobs match.">
        <Link to={address("/jobs", { state: query.state })}>Clear the filters</Link>
        <span class="faint">
          Finished jobs are in the <Link to="/history">history</Link>.
        </span>
      </Empty>
    );
  }
  if (query.state) {
    return (
      <Empty title={`No ${lookOf(query.state).label.toLowerCase()} jobs.`}>
        <Link to="/jobs">Show jobs of all states</Link>
      </Empty>
    );
  }
  return (
    <Empty title="No jobs.">
      <span>
        Add one: <code>npx hathi add hello</code>, or <Link to="/jobs/new">with a form</Link>.
      </span>
    </Empty>
  );
}
