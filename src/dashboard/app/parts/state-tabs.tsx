import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { type JobCounts, type JobQuery, type JobStateName, jobStates } from "../../contract.ts";
import { read } from "../core/api.ts";
import { changeQuery, Link } from "../core/router.tsx";
import { formatCount } from "./amount.tsx";
import { Icon } from "./icon.tsx";
import { lookOf } from "./state.tsx";

/** One tab for each state, with how many jobs it has under the other filters. */
export function StateTabs({ query }: { readonly query: JobQuery }): JSX.Element {
  const { state, ...rest } = query;
  const [counts, setCounts] = useState<Partial<JobCounts>>({});
  const name = JSON.stringify(rest);
  useEffect(() => {
    const leaving = new AbortController();
    setCounts({});
    for (const one of jobStates) {
      read("count", { ...rest, state: one }, leaving.signal).then(
        (count) => setCounts((known) => ({ ...known, [one]: count })),
        () => undefined,
      );
    }
    return () => leaving.abort();
  }, [name]);
  const tab = (one: JobStateName | undefined, label: string): JSX.Element => {
    const count = one && counts[one];
    return (
      <Link key={label} to={changeQuery({ state: one })} aria-current={state === one ? "page" : undefined}>
        {one && <Icon name={lookOf(one).icon} />}
        {label}
        {count && <span class="count">{formatCount(count)}</span>}
      </Link>
    );
  };
  return (
    <nav class="tabs" aria-label="States">
      {tab(undefined, "All")}
      {jobStates.map((one) => tab(one, lookOf(one).label))}
    </nav>
  );
}
