/**
 * The glossary. One word per idea, in names, messages and documents:
 *
 * - *job*: a row of work: a task's name, a payload, and when it may run. It is *waiting*, *scheduled* (may not run
 *   yet), *running* (locked by a pool) or *dead* (permanently failed: its attempts are used up); when it is done its row is gone.
 * - *task*: the function that does the work of all jobs with its name (its *identifier*).
 * - *queue*: a name that jobs share so that never two of them run at the same time. Most jobs have none.
 * - *key*: a name that makes a waiting job replaceable: adding with the same key changes it instead of adding another.
 * - *pool*: one process's share of the work: one *claimer* and a number of *slots* (workers). Its id is what locks carry.
 * - *claim*: to lock due jobs for a pool. *Run*: to call the task. *Settle*: to write how it ended. *Return*: to give an unstarted or
 *   interrupted job back with its attempt restored. *Sweep*: to take jobs from a dead pool. *Nudge*: to wake a claimer.
 * - *buffer*: jobs a pool has claimed ahead and not started yet.
 */

import type { GuardOptions, SkippedBy } from "./guards.ts";
import type { AnyTaskDefinition, TaskInput } from "./task-definition.ts";

/** A job as it stands in the database. */
export interface DbJob {
  id: string;
  job_queue_id: number | null;
  task_id: number;
  payload: unknown;
  priority: number;
  run_at: Date;
  attempts: number;
  max_attempts: number;
  last_error: string | null;
  created_at: Date;
  updated_at: Date;
  key: string | null;
  locked_at: Date | null;
  locked_by: string | null;
  revision: number;
  flags: { [flag: string]: true } | null;
  is_available: boolean;
}

/** A job together with the name of its task. */
export interface Job extends DbJob {
  task_identifier: string;
  /**
   * Only on what adding returns: the guard that kept it from being added. The job is the earlier one then. If that has ended, only `id`,
   * `task_identifier` and `created_at` are its own.
   */
  skipped?: SkippedBy;
}

export type JobKeyMode = "replace" | "preserve_run_at" | "unsafe_dedupe";

/** The modes that a job of `addJobs` may have. */
type ListedKeyMode = Exclude<JobKeyMode, "unsafe_dedupe">;

/** How and when a job runs; everything has a default. */
export interface TaskSpec extends GuardOptions {
  /** Jobs with the same queue name run one after the other, never at once. */
  queueName?: string;
  /** Not before this moment; now, if left out. */
  runAt?: Date;
  /** Lower numbers run first; from -32768 to 32767, 0 if left out. */
  priority?: number;
  /** How often the job is tried before it is left as failed; 25 if left out. */
  maxAttempts?: number;
  /** Adding with the key of a waiting job changes that job instead of adding another. */
  jobKey?: string;
  /** What to do when the key is taken: `replace` (everything), `preserve_run_at`, or `unsafe_dedupe` (nothing). */
  jobKeyMode?: JobKeyMode;
  /** With a `jobKey`: a job of that key that is running is cancelled. Otherwise it may finish. Not for one job of `addJobs`. */
  cancelRunning?: boolean;
  /** Marks that workers may be told to skip or to look for. */
  flags?: string[];
}

declare global {
  namespace GraphileWorker {
    /** Merge your own tasks into this: the name of each, and the type of its payload. */
    interface Tasks {}
  }
}

/** A task's name: one of the registered ones, or any other string. */
export type TaskName = keyof GraphileWorker.Tasks | (string & {});

/** The payload type that was registered for a task's name, or `unknown`. */
export type PayloadOf<Name> = Name extends keyof GraphileWorker.Tasks ? GraphileWorker.Tasks[Name] : unknown;

/** One job of an `addJobs` call. */
export type AddJobsJobSpec<Name extends TaskName = TaskName> = {
  [Each in Name]: Omit<TaskSpec, "jobKeyMode" | "cancelRunning"> & {
    identifier: Each;
    payload: PayloadOf<Each>;
    /** What to do when the key is taken; if left out, the call's second argument decides. */
    jobKeyMode?: ListedKeyMode;
  };
}[Name];

/** A job spec as the database's `job_spec` type names it. */
export interface DbJobSpec<Name extends TaskName = string> {
  identifier: Name;
  payload: PayloadOf<Name>;
  queue_name?: string | null;
  run_at?: string | null;
  max_attempts?: number | null;
  job_key?: string | null;
  priority?: number | null;
  flags?: string[] | null;
}

/** Adds one job and returns it. */
export type AddJobFunction = <Name extends TaskName = TaskName>(
  identifier: Name,
  payload: PayloadOf<Name>,
  spec?: TaskSpec,
) => Promise<Job>;

/** Adds many jobs in one statement and returns them in the order of the specs. */
export type AddJobsFunction = <const Names extends readonly TaskName[]>(
  jobSpecs: readonly [...{ [Index in keyof Names]: AddJobsJobSpec<Names[Index]> }],
  jobKeyPreserveRunAt?: boolean,
) => Promise<readonly Job[]>;

/** One job of an `addJobs` call whose task is a name or a definition. */
export type AnyJobSpec<Task extends TaskName | AnyTaskDefinition> = Omit<TaskSpec, "jobKeyMode" | "cancelRunning"> & {
  identifier: Task;
  payload: Task extends AnyTaskDefinition ? TaskInput<Task> : PayloadOf<Task>;
  jobKeyMode?: ListedKeyMode;
};

/*
 * The signatures for names stay types of their own: code that was written against them, and functions that are declared to
 * have them, must go on compiling. They come last, where TypeScript looks when it is asked for parameters.
 */

/** Adds one job, for a task's name or its definition, and returns it. */
export interface AddAnyJobFunction extends AddJobFunction {
  <Definition extends AnyTaskDefinition>(
    task: Definition,
    payload: TaskInput<Definition>,
    spec?: TaskSpec,
  ): Promise<Job>;
}

/** Adds many jobs in one statement and returns them in the order of the specs. Each names its task or gives its definition. */
export interface AddAnyJobsFunction extends AddJobsFunction {
  <const Tasks extends readonly (TaskName | AnyTaskDefinition)[]>(
    jobSpecs: readonly [...{ [Index in keyof Tasks]: AnyJobSpec<Tasks[Index]> }],
    jobKeyPreserveRunAt?: boolean,
  ): Promise<readonly Job[]>;
}
