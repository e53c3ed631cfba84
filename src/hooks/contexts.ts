import type { CronJob } from "../events.ts";
import type { Job, TaskSpec } from "../job.ts";
import type { Pause } from "../pause.ts";
import type { EnhancedWithPgClient, PromiseOrDirect } from "../task.ts";
import type { LocalQueueMode } from "../worker.ts";
import type { HookResult, JobRecoveryResult, JobScheduleResult } from "./results.ts";

/** What every hook gets. */
interface OfAny {
  /** Your own state: the option `context`. */
  readonly context: GraphileWorker.Context;
}

interface OfWorker extends OfAny {
  /** What the locks of its jobs carry (`locked_by`). */
  readonly workerId: string;
}

interface OfJob extends OfWorker {
  readonly job: Job;
}

interface OfFailure extends OfJob {
  readonly error: Error;
  readonly durationMs: number;
}

/** Why a worker ended: on request, by a signal, forcefully, or because of an error. */
export type ShutdownReason = "graceful" | "signal" | "forceful" | "error";

/** Why a job was taken from its worker before its end. */
export type InterruptionReason = "shutdown" | "workerCrashed";

/** Hooks that watch: called once what they report is true, never waited for, and unable to do harm. */
export interface ObserverContexts {
  /** A worker is about to start; nothing has been claimed. */
  workerInit: OfAny & {
    readonly schema: string;
    readonly concurrency: number;
    readonly withPgClient: EnhancedWithPgClient;
  };
  /** The database knows the worker's tasks, and the first jobs may be claimed. */
  workerStart: OfWorker & { readonly withPgClient: EnhancedWithPgClient };
  /** All is written and nothing runs any more. The one hook that is waited for, for at most five seconds. */
  workerShutdown: OfWorker & {
    readonly reason: ShutdownReason;
    readonly error: Error | null;
    readonly withPgClient: EnhancedWithPgClient;
  };
  /** This worker recovered the jobs of dead ones. */
  workerRecovered: OfWorker & { readonly deadWorkerIds: readonly string[]; readonly jobsRecovered: number };
  /** Something is paused that concerns this worker; it learnt of it now. */
  pause: OfWorker & { readonly pause: Pause };
  /** That pause is over. */
  resume: OfWorker & { readonly pause: Pause };
  /** The job is ours; it may wait a little before it starts. */
  jobFetch: OfJob;
  /** The task is called now. */
  jobStart: OfJob;
  /** The job is done and gone. */
  jobComplete: OfJob & { readonly durationMs: number };
  /** The job failed and will be tried again. */
  jobFail: OfFailure;
  /** The job failed and has no attempt left. */
  jobPermanentlyFail: OfFailure;
  /** The job is cancelled and gone, from outside or by its task. */
  jobCancel: OfFailure;
  /** The task put the job off; its attempt is not used. */
  jobSnooze: OfFailure & { readonly runAt: Date };
  /** The job took longer than its timeout; its signal has aborted. */
  jobTimeout: OfJob & { readonly timeoutMs: number };
  /** The job ignored that: its attempt has failed, and its slot stays taken until its task returns. */
  jobOverrun: OfJob & { readonly timeoutMs: number; readonly durationMs: number };
  /** The job was returned, not failed: its worker stopped before the job ended. */
  jobInterrupted: OfJob & { readonly reason: InterruptionReason };
  /** A moment at which recurring jobs may be due: each minute, and each second that an entry names. */
  cronTick: OfAny & { readonly timestamp: Date; readonly identifiers: readonly string[] };
  /** This process, of all, added the job of a recurring entry. */
  cronJobScheduled: OfAny & {
    readonly identifier: string;
    readonly job: CronJob;
    readonly jobId: string;
    readonly scheduledAt: Date;
  };
  localQueueInit: OfWorker;
  localQueueSetMode: OfWorker & { readonly oldMode: LocalQueueMode; readonly newMode: LocalQueueMode };
  localQueueGetJobsComplete: OfWorker & { readonly jobCount: number };
  localQueueReturnJobs: OfWorker & { readonly jobCount: number };
  localQueueRefetchDelayStart: OfWorker & {
    readonly durationMs: number;
    readonly threshold: number;
    readonly abortThreshold: number;
  };
  localQueueRefetchDelayAbort: OfWorker & { readonly count: number; readonly abortThreshold: number };
  localQueueRefetchDelayExpired: OfWorker;
}

/** Hooks that decide: called in the order they were registered until one gives a final answer, and waited for. */
export interface InterceptorContexts {
  /** Skip: the job counts as done without having run. */
  beforeJobRun: OfJob & { readonly payload: unknown };
  /** Skip: the job counts as done even if it failed. */
  afterJobRun: OfJob & {
    readonly result: { readonly ok: true } | { readonly ok: false; readonly error: Error };
    readonly durationMs: number;
  };
  /** Asked before a job is added, whichever way it takes through this library. */
  beforeJobSchedule: OfAny & { readonly identifier: string; readonly payload: unknown; readonly spec: TaskSpec };
  /** What becomes of a job whose worker died, or had to stop before the job's end. */
  jobRecovery: OfJob & { readonly previousWorkerId: string; readonly reason: InterruptionReason };
}

interface InterceptorResults {
  beforeJobRun: HookResult;
  afterJobRun: HookResult;
  beforeJobSchedule: JobScheduleResult;
  jobRecovery: JobRecoveryResult;
}

export type ObserverName = keyof ObserverContexts;
export type InterceptorName = keyof InterceptorContexts;
export type HookName = ObserverName | InterceptorName;
export type HookContext<Name extends HookName> = (ObserverContexts & InterceptorContexts)[Name];

/** A function to call at one point of a job's way. */
export type LifecycleHook<Name extends HookName> = (
  context: HookContext<Name>,
) => PromiseOrDirect<Name extends InterceptorName ? InterceptorResults[Name] : unknown>;

/** Hooks by their names; several of one name are called in their order. */
export type LifecycleHooks = {
  [Name in HookName]?: LifecycleHook<Name> | readonly LifecycleHook<Name>[];
};
