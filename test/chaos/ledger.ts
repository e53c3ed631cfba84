import { readFileSync } from "node:fs";

/** A line of the ledger; `at` is by a clock that all processes share. */
export interface Entry {
  readonly event: "start" | "done" | "threw" | "health";
  readonly at: number;
  readonly pid: number;
  readonly job: string;
  readonly attempt: number;
  readonly queue: number | null;
  readonly heap: number;
  readonly rss: number;
  readonly delay: number;
}

/** One run of a job; without an end if its process died. */
interface Run {
  readonly job: string;
  readonly pid: number;
  readonly queue: number | null;
  readonly from: number;
  to: number;
  end: "done" | "threw" | undefined;
}

/** Something that excuses another run of a job: it hit this process, or all of them (null). */
export interface Blow {
  readonly pid: number | null;
  readonly from: number;
  to: number;
  /** If the process was stopped: just before it was let go on. */
  backAt?: number;
}

/** What must not happen, in the words that a failed test shows. Each list is empty when all is well. */
export interface Verdict {
  /** Jobs whose adding was confirmed, and that never ended well. */
  readonly lost: string[];
  /** Jobs that ran again although they had not failed and nothing had hit their process. */
  readonly doubled: string[];
  /** Pairs of jobs of a queue that ran at the same time. */
  readonly overlapping: string[];
  /** Jobs that started before one that stood in front of them in their queue was over. */
  readonly overtaking: string[];
}

/** The clock that the processes write with. */
export const now = (): number => Number(process.hrtime.bigint()) / 1e6;

export function readLedger(file: string): Entry[] {
  const lines = readFileSync(file, "utf8").split("\n");
  return lines.filter((line) => line.endsWith("}")).map((line) => JSON.parse(line) as Entry);
}

/** Judges a ledger. `queueByJob` are the jobs that must end well, in the order in which they were added. */
export function judge(
  entries: readonly Entry[],
  queueByJob: ReadonlyMap<string, string | null>,
  blows: readonly Blow[],
): Verdict {
  const runs = findRuns(entries);
  const runsByJob = groupBy(runs, ({ job }) => job);
  return {
    lost: [...queueByJob.keys()].filter((job) => !runsByJob.get(job)?.some(({ end }) => end === "done")),
    doubled: findDoubled([...runsByJob.values()], blows, entries),
    overlapping: findOverlapping(runs, blows),
    overtaking: findOvertaking(queueByJob, runsByJob),
  };
}

function findRuns(entries: readonly Entry[]): Run[] {
  const runs: Run[] = [];
  const open = new Map<string, Run>();
  for (const { event, job, pid, queue, at } of entries.toSorted((a, b) => a.at - b.at)) {
    if (event === "health") continue;
    if (event === "start") {
      const run: Run = { job, pid, queue, from: at, to: Infinity, end: undefined };
      runs.push(run);
      open.set(`${pid}/${job}`, run);
    } else {
      const run = open.get(`${pid}/${job}`)!;
      run.to = at;
      run.end = event;
    }
  }
  return runs;
}

/** Jobs that a process had claimed start within this many milliseconds of the blow, even on a busy machine. */
const claimedAheadMs = 2_000;

function isHit({ pid, from, to }: Blow, run: Run, before: number): boolean {
  return (pid === null || pid === run.pid) && to + claimedAheadMs >= run.from && from <= before;
}

/**
 * A process may be stopped after it has decided to start a job and before the job's first line; nothing can take that back. Then this line
 * is the first that it writes when it goes on.
 */
function wasStoppedAtStart({ pid, backAt }: Blow, run: Run, entries: readonly Entry[]): boolean {
  if (pid !== run.pid || backAt === undefined || run.from < backAt) return false;
  return !entries.some((entry) => entry.pid === pid && entry.at >= backAt && entry.at < run.from);
}

function findDoubled(runsOfJobs: readonly Run[][], blows: readonly Blow[], entries: readonly Entry[]): string[] {
  return runsOfJobs.flatMap((runs) =>
    runs.slice(1).flatMap((run, index) => {
      const before = runs[index]!;
      if (before.end === "threw" || blows.some((blow) => isHit(blow, before, run.from))) return [];
      if (blows.some((blow) => wasStoppedAtStart(blow, run, entries))) return [];
      const ended = before.end ? `ended in ${before.pid} ${Math.round(run.from - before.to)} ms before` : "was running";
      const hits = blows.map(
        ({ pid, from, to }) => `${pid} ${Math.round(from - run.from)}..${Math.round(to - run.from)} ms`,
      );
      return [`job ${run.job} ran in ${run.pid} again: it ${ended}; hit were ${hits.join(", ") || "none"}`];
    }),
  );
}

function findOverlapping(runs: readonly Run[], blows: readonly Blow[]): string[] {
  // What a process does after it was hit is none of the queue's business any more.
  const endOf = (run: Run): number =>
    Math.min(run.to, ...blows.filter((blow) => isHit(blow, run, run.to)).map(({ from }) => Math.max(from, run.from)));
  return [...groupBy(runs, ({ queue }) => queue)].flatMap(([queue, list]) => {
    if (queue === null) return [];
    let before = list[0]!;
    return list.slice(1).flatMap((run) => {
      const last = before;
      if (endOf(run) > endOf(last)) before = run;
      return endOf(last) > run.from && endOf(run) > run.from
        ? [`job ${run.job} started in ${run.pid} while job ${last.job} of its queue ran in ${last.pid}`]
        : [];
    });
  });
}

function findOvertaking(
  queueByJob: ReadonlyMap<string, string | null>,
  runsByJob: ReadonlyMap<string, readonly Run[]>,
): string[] {
  return [...groupBy([...queueByJob.keys()], (job) => queueByJob.get(job)!)].flatMap(([queue, jobs]) => {
    if (queue === null) return [];
    return jobs.slice(1).flatMap((job, index) => {
      const [first] = runsByJob.get(job) ?? [];
      if (!first || runsByJob.get(jobs[index]!)?.some(({ to }) => to <= first.from)) return [];
      return [`job ${job} overtook job ${jobs[index]!} in ${queue}`];
    });
  });
}

function groupBy<Key, Item>(items: readonly Item[], keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group) group.push(item);
    else groups.set(keyOf(item), [item]);
  }
  return groups;
}
