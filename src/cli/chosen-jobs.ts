import type { JobFilter } from "../admin/job-filter.ts";
import { checkState } from "../admin/job-filter.ts";
import { countJobs, eachJobId } from "../admin/list-jobs.ts";
import { parseMoment } from "./flags.ts";
import { formatCount, formatJobs } from "./job-table.ts";
import type { Queue } from "./open-queue.ts";
import type { Terminal } from "./terminal.ts";
import { UsageError } from "./usage-error.ts";

export interface FilterArgs {
  readonly state?: string | undefined;
  readonly task?: string | undefined;
  readonly queue?: string | undefined;
  readonly key?: string | undefined;
  readonly since?: string | undefined;
  readonly search?: string | undefined;
}

export function filterOf(args: FilterArgs): JobFilter {
  const { state, since, task, queue, key, search } = args;
  return {
    ...(state !== undefined && state !== "all" && { state: checkState(state) }),
    ...(since !== undefined && { since: parseMoment("since", since, -1) }),
    task,
    queue,
    key,
    search,
  };
}

export interface ActionArgs extends FilterArgs {
  readonly ids?: readonly (string | number)[] | undefined;
  readonly yes: boolean;
  readonly json: boolean;
}

export interface Action {
  /** As in `Retry 3 jobs?`. */
  readonly verb: string;
  /** As in `3 jobs retried.`. */
  readonly done: string;
  /** Gives the ids it changed. */
  readonly act: (ids: readonly string[]) => Promise<readonly { readonly id: string }[]>;
}

/** Does something to the jobs whose ids were given, or to all that match a filter: shown first, and only after a yes. */
export async function actOnJobs(queue: Queue, args: ActionArgs, action: Action, terminal: Terminal): Promise<number> {
  const ids = (args.ids ?? []).map(String);
  const filter = filterOf(args);
  const hasFilter = Object.values(filter).some((value) => value !== undefined) || args.state === "all";
  if (ids.length > 0 && hasFilter) throw new UsageError("Give either ids or a filter, not both.");
  if (ids.length > 0) return reportEnd(ids.length, await action.act(ids), args, action, terminal);
  if (!hasFilter) {
    throw new UsageError("Say which jobs: by id, or with --task, --state, --queue, --key, --since or --search.");
  }

  const expected = await countJobs(queue.database, filter);
  if (!args.yes) {
    if (expected > 0) await showSome(queue, filter, expected, terminal);
    const isMeant = expected > 0 && (await terminal.confirm(`${action.verb} ${jobsOf(expected)}?`));
    if (!isMeant) {
      terminal.note(expected === 0 ? "No job matches." : "Nothing was changed.");
      return expected === 0 ? 0 : 1;
    }
  }
  const changed: { id: string }[] = [];
  let seen = 0;
  for await (const batch of eachJobId(queue.database, filter)) {
    for (const { id } of await action.act(batch)) changed.push({ id });
    seen += batch.length;
    terminal.progress(`${formatCount(seen)} of ${jobsOf(expected)}…`);
  }
  terminal.clearProgress();
  return reportEnd(seen, changed, args, action, terminal);
}

async function showSome(queue: Queue, filter: JobFilter, expected: number, terminal: Terminal): Promise<void> {
  const { jobs } = await queue.listJobs({ ...filter, limit: 5 });
  terminal.note(formatJobs(jobs, terminal));
  if (expected > jobs.length) terminal.note(`… and ${formatCount(expected - jobs.length)} more.`);
}

function reportEnd(
  asked: number,
  changed: readonly { readonly id: string }[],
  { json }: ActionArgs,
  { done }: Action,
  terminal: Terminal,
): number {
  if (json) terminal.printJson({ asked, changed: changed.map(({ id }) => id) });
  else terminal.print(`${jobsOf(changed.length)} ${done}.`);
  const left = asked - changed.length;
  if (left > 0) terminal.note(`${jobsOf(left)} left alone: running, or not there any more.`);
  return changed.length === 0 && asked > 0 ? 1 : 0;
}

function jobsOf(count: number): string {
  return `${formatCount(count)} job${count === 1 ? "" : "s"}`;
}
