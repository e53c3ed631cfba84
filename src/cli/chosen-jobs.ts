import type { JobFilter, JobState, QueueUtils } from "../index.ts";
import { parseMoment } from "./flags.ts";
import { formatCount, formatJobs } from "./job-table.ts";
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
    ...(state !== undefined && state !== "all" && { state: state as JobState }),
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
  /** What single jobs are named by, if not by their ids. */
  readonly by?: string;
  /** Why a job may have been left alone, if not because it is running. */
  readonly leaves?: string;
  /** Gives the ids it changed. */
  readonly act: (ids: readonly string[]) => Promise<readonly { readonly id: string }[]>;
  /** Called at the end; what it gives is added to the JSON. */
  readonly details?: () => object;
}

/** Does something to the jobs whose ids were given, or to all that match a filter: shown first, and only after a yes. */
export async function actOnJobs(
  utils: QueueUtils,
  args: ActionArgs,
  action: Action,
  terminal: Terminal,
): Promise<number> {
  const ids = (args.ids ?? []).map(String);
  const filter = filterOf(args);
  const hasFilter = Object.values(filter).some((value) => value !== undefined) || args.state === "all";
  if (ids.length > 0 && hasFilter) throw new UsageError("Give either ids or a filter, not both.");
  if (ids.length > 0) {
    const changed = await action.act(ids);
    return reportEnd({ matched: ids.length, changed: changed.map(({ id }) => id) }, args, action, terminal);
  }
  if (!hasFilter) {
    throw new UsageError(
      `Say which jobs: by ${action.by ?? "id"}, or with --task, --state, --queue, --key, --since or --search.`,
    );
  }

  const expected = await utils.countJobs(filter);
  if (!args.yes) {
    if (expected > 0) await showSome(utils, filter, expected, terminal);
    const isMeant = expected > 0 && (await terminal.confirm(`${action.verb} ${jobsOf(expected)}?`));
    if (!isMeant) {
      if (args.json) terminal.printJson([]);
      terminal.note(expected === 0 ? "No job matches." : "Nothing was changed.");
      return expected === 0 ? 0 : 1;
    }
  }
  const result = await utils.changeMatchingJobs(filter, action.act, {
    onProgress: ({ matched }) => terminal.progress(`${formatCount(matched)} of ${jobsOf(expected)}…`),
  });
  terminal.clearProgress();
  return reportEnd(result, args, action, terminal);
}

async function showSome(utils: QueueUtils, filter: JobFilter, expected: number, terminal: Terminal): Promise<void> {
  const { jobs } = await utils.listJobs(filter, { limit: 5 });
  terminal.note(formatJobs(jobs, terminal));
  if (expected > jobs.length) terminal.note(`… and ${formatCount(expected - jobs.length)} more.`);
}

function reportEnd(
  { matched, changed }: { readonly matched: number; readonly changed: readonly string[] },
  { json }: ActionArgs,
  { done, details, leaves = "running" }: Action,
  terminal: Terminal,
): number {
  const more = details?.();
  if (json) terminal.printJson(more ? { changed, ...more } : changed);
  else terminal.print(`${jobsOf(changed.length)} ${done}.`);
  const left = matched - changed.length;
  if (left > 0) terminal.note(`${jobsOf(left)} left alone: ${leaves}, or not there any more.`);
  return changed.length === 0 && matched > 0 ? 1 : 0;
}

function jobsOf(count: number): string {
  return `${formatCount(count)} job${count === 1 ? "" : "s"}`;
}
