import type { Database } from "../db/database.ts";
import { type ControlCountsRow, countControlled } from "../db/statements/control.ts";
import {
  countAllJobs,
  countRunningJobs,
  countSampledJobs,
  type JobCountRow,
  jobTablePages,
  type OldestJobRow,
  oldestWaitingJob,
} from "../db/statements/stats.ts";
import type { Pause } from "../pause.ts";
import { type JobState, jobStates } from "./job-filter.ts";
import { readPauses } from "./read-pauses.ts";

export type StateCounts = { readonly [State in JobState]: number } & { readonly total: number };

export interface JobStats {
  /** False if all counts except that of running jobs are estimated from a sample. */
  readonly isExact: boolean;
  /** Jobs by state. */
  readonly counts: StateCounts;
  /** Jobs by task and state, most jobs first. */
  readonly tasks: readonly ({ readonly task: string } & StateCounts)[];
  /** Jobs by queue and state, most jobs first; jobs without a queue are not included. */
  readonly queues: readonly ({ readonly queue: string } & StateCounts)[];
  /** The waiting job that has been due longest. */
  readonly oldestWaiting: OldestJobRow | null;
  /** The pauses in force, oldest first. */
  readonly pauses: readonly Pause[];
  /** Jobs that were cancelled within a day, are stopping, were snoozed, or exceed their timeout. */
  readonly controlled: ControlCountsRow;
}

export interface JobStatsOptions {
  /** Count every job, even if that takes long. */
  readonly exact?: boolean | undefined;
}

/**
 * Counting takes as long as reading the table. Up to this size (32 MB, some 150,000 jobs) that is a matter of 50 ms and the
 * counts are exact; beyond, this many pages are read at random and their counts are scaled up.
 */
const pagesToRead = 4096;
/** Up to this size (1 GB) looking at each row's lock is bearable, and then at least running jobs are exact. */
const pagesToLookThrough = 131_072;

/** How many jobs there are, by state, task and queue, and how far behind the workers are. */
export async function getJobStats(db: Database, { exact = false }: JobStatsOptions = {}): Promise<JobStats> {
  const [size] = await db.run(jobTablePages, { schema: db.schema });
  const pages = size?.pages ?? 0;
  const isExact = exact || pages <= pagesToRead;
  const percent = (100 * pagesToRead) / pages;
  const rows = isExact ? await db.run(countAllJobs, {}) : await db.run(countSampledJobs, { percent });
  const scaled = isExact ? rows : rows.map((row) => ({ ...row, count: Math.round((row.count * 100) / percent) }));
  const counts = sum(scaled);
  const running = !isExact && pages <= pagesToLookThrough ? await db.run(countRunningJobs, {}) : [];
  const [oldest] = await db.run(oldestWaitingJob, {});
  const [controlled] = await db.run(countControlled, {});
  return {
    isExact,
    counts: { ...counts, running: running[0]?.count ?? counts.running },
    tasks: sumBy(scaled, (row) => row.task_identifier).map(([task, sums]) => ({ task, ...sums })),
    queues: sumBy(scaled, (row) => row.queue_name).map(([queue, sums]) => ({ queue, ...sums })),
    oldestWaiting: oldest ?? null,
    pauses: await readPauses(db),
    controlled: controlled!,
  };
}

function sumBy(rows: readonly JobCountRow[], nameOf: (row: JobCountRow) => string | null): [string, StateCounts][] {
  const rowsByName = new Map<string, JobCountRow[]>();
  for (const row of rows) {
    const name = nameOf(row);
    if (name !== null) rowsByName.set(name, [...(rowsByName.get(name) ?? []), row]);
  }
  return [...rowsByName]
    .map(([name, group]): [string, StateCounts] => [name, sum(group)])
    .sort(([a, first], [b, second]) => second.total - first.total || a.localeCompare(b));
}

function sum(rows: readonly JobCountRow[]): StateCounts {
  const counts = Object.fromEntries([...jobStates, "total"].map((state) => [state, 0])) as Record<
    keyof StateCounts,
    number
  >;
  for (const { state, count } of rows) {
    counts[state] += count;
    counts.total += count;
  }
  return counts;
}
