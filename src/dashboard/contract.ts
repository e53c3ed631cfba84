/*
 * What the dashboard's server and its browser app say to each other. Every address is relative to where the dashboard is mounted; the page's
 * `<base>` points there. Moments are ISO 8601 strings in UTC, lengths of time are milliseconds, ids are strings.
 *
 * GET answers carry a page's snapshot. POST needs the header `x-hathi-dashboard: 1` and a JSON body. Errors are an `ApiError` with a matching status.
 */

/** The header that every POST carries; a form of another site cannot. */
export const requestHeader = "x-hathi-dashboard";

export type Moment = string;

/** A number that was counted up to a bound: `isMore` if there are more than `count`. */
export interface BoundedCount {
  readonly count: number;
  readonly isMore: boolean;
}

export interface ApiError {
  readonly error: {
    readonly code: ErrorCode;
    /** One sentence for people. */
    readonly message: string;
  };
}

export type ErrorCode =
  | "bad-request" // 400
  | "sign-in" // 401
  | "forbidden" // 403: not permitted, or from another site
  | "not-found" // 404
  | "wrong-method" // 405
  | "conflict" // 409
  | "too-large" // 413
  | "wrong-type" // 415: not JSON
  | "busy" // 503: the database did not answer in time
  | "failed"; // 500: a mistake of ours, logged by the server

// ——— Who may do what ———————————————————————————————————————————————————————————————————————————————————————————————————

/** What a person may be permitted to do beside reading. An action needs the permission of the same name. */
export const permissions = [
  "retry",
  "runNow",
  "reschedule",
  "cancel",
  "fail",
  "remove",
  "add",
  "pause",
  "resume",
  "runCron",
  "setLimit",
  "clearLimit",
  "unlockWorker",
] as const;
export type Permission = (typeof permissions)[number];

/** GET api/session */
export interface Session {
  readonly user: string | null;
  readonly can: readonly Permission[];
  /** No user may change anything here. */
  readonly isReadOnly: boolean;
  /** There is a session that `POST api/sign-out` ends. */
  readonly canSignOut: boolean;
  /** What the page calls this installation, such as "production". */
  readonly title: string | null;
  readonly database: string;
  readonly schema: string;
  readonly version: string;
  /** The server's clock. */
  readonly now: Moment;
  /** What there is to show. Without metrics there are no rates and percentiles, without history no finished jobs and errors. */
  readonly has: { readonly metrics: boolean; readonly history: boolean; readonly limits: boolean };
  /** Tasks that can be added with a form. */
  readonly tasks: readonly AddableTask[];
}

interface AddableTask {
  readonly name: string;
  /** Its payload is checked before a job is added. */
  readonly isChecked: boolean;
}

// ——— Overview —————————————————————————————————————————————————————————————————————————————————————————————————————————

export const spans = ["15m", "1h", "3h", "1d", "3d", "30d"] as const;
export type Span = (typeof spans)[number];

/** GET api/overview?span=1h */
export interface Overview {
  readonly now: Moment;
  readonly span: Span;
  /** Most urgent first; empty if all is well. */
  readonly warnings: readonly Warning[];
  /** "All good. 1,204 jobs in the last minute …" without warnings. */
  readonly summary: string;
  readonly figures: Figures;
  readonly series: Series;
  readonly tasks: readonly TaskRow[];
  readonly workers: { readonly alive: number; readonly silent: number; readonly slots: number; readonly busy: number };
  readonly counts: JobCounts;
  /** The pauses in force. */
  readonly pauses: readonly PauseInfo[];
  /** When workers that run now were started; the latest, oldest first. */
  readonly starts: readonly StartMark[];
}

/** Workers of one version that started together: a deploy or a restart. */
export interface StartMark {
  /** The first of them, in seconds since 1970. */
  readonly at: number;
  /** Of the app; null if its workers do not say. */
  readonly version: string | null;
  readonly workers: number;
}

export interface Warning {
  readonly severity: "warning" | "problem";
  /** A stable name, such as `falling-behind` or `oldest transaction`. */
  readonly kind: string;
  /** One sentence. */
  readonly message: string;
  /** Where to look, as a page's address such as `jobs?state=dead`. */
  readonly link: string | null;
}

/** Of the last minute that is complete; null if it is not known. */
export interface Figures {
  readonly finishedPerMinute: number | null;
  /** From 0 to 1, of the attempts in the span. */
  readonly failureRate: number | null;
  readonly waitP95: number | null;
  readonly runP95: number | null;
  /** How long the oldest job that could run has been due; null if there is none. */
  readonly oldestMs: number | null;
  readonly oldestId: string | null;
}

export interface JobCounts {
  readonly waiting: BoundedCount;
  readonly scheduled: BoundedCount;
  readonly running: BoundedCount;
  readonly dead: BoundedCount;
}

/** Columns of the same length. Null where nothing was recorded. */
export interface Series {
  /** From the start of one point to that of the next. */
  readonly stepMs: number;
  /** Starts of the points, in seconds since 1970 (as uPlot wants them). */
  readonly at: readonly number[];
  readonly succeeded: readonly (number | null)[];
  readonly failed: readonly (number | null)[];
  readonly waitP50: readonly (number | null)[];
  readonly waitP95: readonly (number | null)[];
  readonly waitP99: readonly (number | null)[];
  readonly runP50: readonly (number | null)[];
  readonly runP95: readonly (number | null)[];
  readonly runP99: readonly (number | null)[];
}

export interface TaskRow {
  readonly task: string;
  readonly running: BoundedCount;
  readonly ready: BoundedCount;
  readonly later: BoundedCount;
  readonly dead: BoundedCount;
  /** Attempts that ended, per minute over the span. */
  readonly perMinute: number | null;
  readonly failureRate: number | null;
  readonly waitP95: number | null;
  readonly runP95: number | null;
  readonly oldestMs: number | null;
  /** Attempts per point, about 20 points over the span; empty if nothing was recorded. */
  readonly spark: readonly (number | null)[];
  readonly pause: PauseInfo | null;
  /** How many live workers have it; null if they do not say. */
  readonly workers: number | null;
  readonly isFallingBehind: boolean;
}

// ——— Jobs —————————————————————————————————————————————————————————————————————————————————————————————————————————————

export const jobStates = ["waiting", "scheduled", "running", "dead"] as const;
export type JobStateName = (typeof jobStates)[number];

/** Also the query string of `api/jobs` and of the page `jobs`. */
export interface JobQuery {
  readonly state?: JobStateName | undefined;
  readonly task?: string | undefined;
  readonly queue?: string | undefined;
  readonly key?: string | undefined;
  /** In the payload, the key, the task's name or the last error. */
  readonly search?: string | undefined;
  /** A fingerprint of `api/errors`: jobs whose last attempt failed like this. */
  readonly error?: string | undefined;
  /** Added at this moment or later. */
  readonly since?: Moment | undefined;
  /** Added before this moment. */
  readonly until?: Moment | undefined;
}

/** GET api/jobs?…&after=&limit=50 */
export interface JobsPage {
  readonly now: Moment;
  /** Newest first. */
  readonly jobs: readonly JobRow[];
  /** `after` of the next page; null on the last one. With few or no jobs and a `next`, the search is not over: ask again. */
  readonly next: string | null;
  /** Jobs looked at for this page. */
  readonly lookedAt: number;
}

export interface JobRow {
  readonly id: string;
  readonly state: JobStateName;
  readonly task: string;
  readonly queue: string | null;
  readonly key: string | null;
  readonly priority: number;
  readonly attempts: number;
  readonly maxAttempts: number;
  readonly runAt: Moment;
  readonly createdAt: Moment;
  readonly updatedAt: Moment;
  readonly lockedAt: Moment | null;
  readonly lockedBy: string | null;
  /** The first line of it. */
  readonly lastError: string | null;
  readonly flags: readonly string[];
  readonly isCancelled: boolean;
  readonly snoozes: number;
  readonly pause: PauseInfo | null;
  readonly progress: Progress | null;
}

export interface Progress {
  /** From 0 to 100, if the task says how far it is. */
  readonly percent: number | null;
  readonly message: string | null;
  readonly at: Moment;
}

/** GET api/job?id=42. A job that is gone is answered as far as history tells; 404 if nothing is known. */
export interface JobDetails {
  readonly now: Moment;
  readonly id: string;
  readonly state: JobStateName | "finished";
  /** How it ended, if it is gone. */
  readonly outcome: Outcome | null;
  readonly finishedAt: Moment | null;
  readonly task: string | null;
  readonly queue: string | null;
  readonly key: string | null;
  /** Null where it is not known any more. */
  readonly details: Omit<JobRow, "id" | "state" | "task" | "queue" | "key"> | null;
  /** The whole last error with its stack. */
  readonly lastError: string | null;
  /** What is hidden is `redactedText`. Absent if it is not known or too large. */
  readonly payload?: unknown;
  readonly payloadBytes: number | null;
  readonly result?: unknown;
  /** Why it is where it is, most decisive first. */
  readonly why: readonly Why[];
  /** Oldest first. */
  readonly timeline: readonly TimelineEntry[];
  /** Jobs whose task added it, through the helpers, while their history was kept; at most 20. */
  readonly addedBy: readonly LinkedJob[];
  /** Jobs that its task has added; at most 20. */
  readonly added: readonly LinkedJob[];
  /** It has added more. */
  readonly hasAddedMore: boolean;
  readonly trace: { readonly traceId: string; readonly spanId: string } | null;
  /** Other jobs of its trace; newest first. */
  readonly related: readonly RelatedJob[];
  /** What can be done with it as it is now; of that, the session may permit less. */
  readonly actions: readonly JobActionName[];
}

/** Stands for each value that is hidden. Sent back in the payload of a copy, it means the value of the original. */
export const redactedText = "•••";

export interface Why {
  readonly kind: string;
  /** One or two sentences. */
  readonly message: string;
  /** Where to look, as a page's address. */
  readonly link: string | null;
}

export interface TimelineEntry {
  readonly at: Moment;
  readonly kind: "added" | "started" | Outcome | "due" | "locked" | "action";
  /** One line. */
  readonly message: string;
  readonly attempt: number | null;
  readonly worker: string | null;
  readonly waitMs: number | null;
  readonly runMs: number | null;
  readonly error: string | null;
  readonly fingerprint: string | null;
  /** Where it was thrown: the frames alone. */
  readonly stack: string | null;
}

/** A job that added another one, or was added by it. */
export interface LinkedJob {
  readonly id: string;
  /** Null if nothing is known of it any more. */
  readonly task: string | null;
  /** Where it is, or how it ended. */
  readonly state: JobStateName | Outcome | null;
}

/** A job that was added in the same trace: by the same request, say, or the same run of a task. */
export interface RelatedJob {
  readonly id: string;
  readonly added: "earlier" | "later";
  readonly task: string;
  readonly state: JobStateName | "finished";
}

/** GET api/count?… (a `JobQuery`) */
export interface CountAnswer extends BoundedCount {}

/** GET api/find?q=…: a job id, a key, or a part of a task's or queue's name. */
export interface FindAnswer {
  readonly jobs: readonly JobRow[];
  readonly tasks: readonly string[];
  readonly queues: readonly string[];
}

// ——— Errors ———————————————————————————————————————————————————————————————————————————————————————————————————————————

/** GET api/errors?task=&span=1d */
export interface ErrorsPage {
  readonly now: Moment;
  readonly span: Span;
  /** The latest first. */
  readonly groups: readonly ErrorGroupRow[];
  /** Of a group, only this many of the latest failures were looked at; null if all of the span were. */
  readonly lookedAt: number | null;
}

export interface ErrorGroupRow {
  readonly fingerprint: string;
  readonly task: string;
  readonly errorClass: string;
  /** The first line of the latest. */
  readonly message: string;
  readonly count: BoundedCount;
  readonly jobs: BoundedCount;
  readonly firstAt: Moment;
  readonly lastAt: Moment;
  /** Failures per point over the span. */
  readonly spark: readonly number[];
}

/** GET api/error?fingerprint=… */
export interface ErrorDetails {
  readonly now: Moment;
  readonly group: ErrorGroupRow;
  /** The latest. */
  readonly error: string;
  /** Where it was thrown, if it is known. */
  readonly stack: string | null;
  /** The latest attempts that failed so. */
  readonly attempts: readonly HistoryRow[];
  /** Jobs that are still there and whose last attempt failed so. */
  readonly present: BoundedCount;
}

// ——— Tasks, queues, cron, workers ——————————————————————————————————————————————————————————————————————————————————————

/** GET api/tasks?span=1h */
export interface TasksPage {
  readonly now: Moment;
  readonly span: Span;
  readonly tasks: readonly TaskRow[];
}

/** GET api/task?name=…&span=1h (names have slashes, which proxies do not leave alone in paths) */
export interface TaskDetails {
  readonly now: Moment;
  readonly span: Span;
  readonly row: TaskRow;
  readonly series: Series;
  readonly limits: readonly LimitInfo[];
  readonly errors: readonly ErrorGroupRow[];
  readonly failures: readonly HistoryRow[];
  readonly cron: readonly CronRow[];
}

/** GET api/queues?search=&limit=100 */
export interface QueuesPage {
  readonly now: Moment;
  readonly queues: readonly QueueInfo[];
  /** There are more than are shown. */
  readonly isMore: boolean;
}

export interface QueueInfo {
  readonly name: string;
  readonly waiting: BoundedCount;
  readonly scheduled: BoundedCount;
  /** When its first job is or was due. */
  readonly nextRunAt: Moment | null;
  readonly heldSince: Moment | null;
  readonly heldBy: string | null;
  /** The job that holds it. */
  readonly job: { readonly id: string; readonly task: string } | null;
  readonly pause: PauseInfo | null;
}

/** GET api/cron */
export interface CronPage {
  readonly now: Moment;
  /** The soonest first; those whose pattern this server does not know come last. */
  readonly entries: readonly CronRow[];
}

export interface CronRow {
  readonly identifier: string;
  /** Null if only the database knows the entry: its pattern is in the workers' crontab. */
  readonly task: string | null;
  readonly pattern: string | null;
  readonly timeZone: string | null;
  readonly next: readonly CronRunTime[];
  readonly knownSince: Moment | null;
  readonly lastRunAt: Moment | null;
  /** A run was due more than a minute ago and no worker scheduled it. */
  readonly missedAt: Moment | null;
  readonly pause: PauseInfo | null;
  readonly canRunNow: boolean;
}

interface CronRunTime {
  readonly at: Moment;
  /** ISO 8601 with the offset of the entry's zone. */
  readonly localTime: string;
}

/** GET api/workers */
export interface WorkersPage {
  readonly now: Moment;
  readonly workers: readonly WorkerRow[];
}

export interface WorkerRow {
  readonly id: string;
  readonly life: "alive" | "silent" | "unknown";
  readonly startedAt: Moment | null;
  readonly lastHeartbeatAt: Moment | null;
  readonly hostname: string | null;
  readonly pid: number | null;
  readonly version: string | null;
  /** Of the app that it runs in. */
  readonly appVersion: string | null;
  readonly slots: number | null;
  /** Jobs that it holds. */
  readonly jobs: number;
  readonly queues: number;
  readonly oldestLockAt: Moment | null;
  readonly overruns: number;
  /** The longest recent delay of its event loop; null if it does not say. */
  readonly loopDelayMs: number | null;
  readonly tasks: readonly string[] | null;
  readonly isStopping: boolean;
  readonly pause: PauseInfo | null;
  /** What it runs now, the longest running first; at most 20. */
  readonly running: readonly RunningJob[];
}

interface RunningJob {
  readonly id: string;
  readonly task: string;
  readonly since: Moment;
  readonly progress: Progress | null;
}

// ——— Limits and pauses ———————————————————————————————————————————————————————————————————————————————————————————————

/** GET api/limits */
export interface LimitsPage {
  readonly now: Moment;
  readonly limits: readonly LimitInfo[];
  readonly pauses: readonly PauseInfo[];
}

export const limitKinds = ["concurrency", "rate", "fair"] as const;
type LimitKindName = (typeof limitKinds)[number];

/** Which limit is meant: a task may have one of each kind for each path. */
export interface LimitId {
  /** The task's name, or the name of a limit that several tasks share. */
  readonly name: string;
  readonly kind: LimitKindName;
  /** The key's place in the payload, step by step; empty for one limit over all jobs. */
  readonly path: readonly string[];
}

export interface LimitInfo extends LimitId {
  readonly isShared: boolean;
  readonly tasks: readonly string[];
  /** Jobs at a time, or that start in a period; null if keys only take turns. */
  readonly limit: number | null;
  readonly periodMs: number | null;
  readonly burst: number;
  /** Jobs that a key starts in its turn. */
  readonly weight: number;
  /** Jobs of its tasks. */
  readonly running: BoundedCount;
  readonly waiting: BoundedCount;
  /** Keys with values of their own; at most 50. */
  readonly keys: readonly LimitKey[];
  readonly holds: readonly LimitHoldInfo[];
  /** Keys of the jobs that come next, those with the most jobs first; at most ten. */
  readonly waitingKeys: readonly WaitingKey[];
  /** So many jobs were looked at for them. */
  readonly waitingLookedAt: number;
  /** Changed at run time, or made then: it can be taken back. */
  readonly isChanged: boolean;
}

/** Null leaves the limit's own value. */
export interface LimitKey {
  /** Empty for jobs without a key; `redactedText` if it is a hidden part of payloads, as elsewhere. */
  readonly key: string;
  readonly limit: number | null;
  readonly weight: number | null;
}

interface WaitingKey {
  /** Empty for jobs without a key. */
  readonly key: string;
  readonly jobs: number;
}

export interface LimitHoldInfo {
  /** Null: all jobs. */
  readonly key: string | null;
  readonly until: Moment;
  readonly reason: string | null;
}

export type PauseKindName = "task" | "queue" | "worker" | "cron" | "all";

export interface PauseInfo {
  readonly kind: PauseKindName;
  readonly name: string | null;
  readonly at: Moment;
  readonly until: Moment | null;
  readonly reason: string | null;
  readonly by: string | null;
}

// ——— History and audit ————————————————————————————————————————————————————————————————————————————————————————————————

export const outcomes = ["succeeded", "failed", "permanentlyFailed", "cancelled", "snoozed"] as const;
type Outcome = (typeof outcomes)[number];

/** Also the query string of `api/history` and of the page `history`. */
export interface HistoryQuery {
  readonly task?: string | undefined;
  readonly queue?: string | undefined;
  readonly key?: string | undefined;
  readonly outcome?: Outcome | undefined;
  readonly error?: string | undefined;
  readonly since?: Moment | undefined;
  readonly until?: Moment | undefined;
}

/** GET api/history?…&after=&limit=50 */
export interface HistoryPageAnswer {
  readonly now: Moment;
  readonly entries: readonly HistoryRow[];
  readonly next: string | null;
}

export interface HistoryRow {
  readonly id: string;
  readonly task: string;
  readonly queue: string | null;
  readonly key: string | null;
  readonly attempt: number;
  readonly maxAttempts: number | null;
  readonly outcome: Outcome;
  readonly at: Moment;
  readonly waitMs: number;
  readonly runMs: number;
  readonly worker: string;
  /** The first line. */
  readonly error: string | null;
  readonly fingerprint: string | null;
}

/** GET api/audit?by=&action=&after=&limit=50 */
export interface AuditPage {
  readonly now: Moment;
  /** Newest first. */
  readonly entries: readonly AuditRow[];
  readonly next: string | null;
}

export interface AuditRow {
  readonly id: string;
  readonly at: Moment;
  readonly by: string | null;
  readonly action: string;
  /** What it was about, in words: "job 42", "dead jobs of task 'mail'". */
  readonly target: string;
  /** The page that shows it. */
  readonly link: string | null;
  readonly state: RunState;
  /** What it has changed. */
  readonly changed: number;
  readonly message: string | null;
}

// ——— Actions ——————————————————————————————————————————————————————————————————————————————————————————————————————————

export const jobActionNames = ["retry", "runNow", "reschedule", "cancel", "fail", "remove"] as const;
/** Actions on jobs by id; also those that can be done in bulk. */
export type JobActionName = (typeof jobActionNames)[number];

export interface RescheduleChange {
  readonly runAt?: Moment | undefined;
  readonly priority?: number | undefined;
  readonly maxAttempts?: number | undefined;
}

/** The body of POST api/actions/<name>, by name. */
export interface ActionBodies {
  /** Attempts start over, due now. Running jobs are not changed by any of these except `cancel`. At most 1,000 ids. */
  readonly retry: { readonly ids: readonly string[] };
  /** Due now. */
  readonly runNow: { readonly ids: readonly string[] };
  readonly reschedule: { readonly ids: readonly string[] } & RescheduleChange;
  readonly cancel: { readonly ids: readonly string[]; readonly reason?: string | undefined };
  readonly fail: { readonly ids: readonly string[]; readonly reason?: string | undefined };
  /** Deletes them as if they had succeeded. */
  readonly remove: { readonly ids: readonly string[] };
  readonly add: NewJob;
  readonly pause: {
    readonly target: PauseTargetBody;
    readonly until?: Moment | undefined;
    readonly reason?: string | undefined;
  };
  readonly resume: { readonly target: PauseTargetBody };
  readonly runCron: { readonly identifier: string };
  readonly setLimit: LimitId & {
    readonly key?: string | undefined;
    readonly limit?: number | undefined;
    readonly weight?: number | undefined;
  };
  readonly clearLimit: LimitId & { readonly key?: string | undefined };
  /** Frees what a worker holds that is certainly dead; its jobs run again. */
  readonly unlockWorker: { readonly worker: string };
}

/** Draining a worker is a pause of it. */
export interface PauseTargetBody {
  readonly kind: PauseKindName;
  /** Absent for `all`. */
  readonly name?: string | undefined;
}

export interface NewJob {
  readonly task: string;
  readonly payload?: unknown;
  readonly queue?: string | undefined;
  readonly key?: string | undefined;
  readonly keyMode?: "replace" | "preserve_run_at" | "unsafe_dedupe" | undefined;
  readonly runAt?: Moment | undefined;
  readonly priority?: number | undefined;
  readonly maxAttempts?: number | undefined;
  readonly flags?: readonly string[] | undefined;
  /** The job that this is a copy of: `redactedText` in the payload means its value there. */
  readonly copyOf?: string | undefined;
}

/** GET api/form?task=…: what the server knows of the payloads that a task takes. */
export interface PayloadForm {
  readonly task: string;
  /** The server has the task, so that it knows whether there is a schema. */
  readonly isKnown: boolean;
  /** Payloads are checked by the task's validator. */
  readonly isChecked: boolean;
  /** What the validator takes, as JSON Schema; null if its library cannot tell, or if there is none. */
  readonly schema: PayloadSchema | null;
}

/** The parts of JSON Schema that a form is made from. */
export interface PayloadSchema {
  readonly type?: unknown;
  readonly title?: unknown;
  readonly description?: unknown;
  readonly properties?: unknown;
  readonly required?: unknown;
  readonly enum?: unknown;
  readonly default?: unknown;
  readonly format?: unknown;
}

/** POST api/check with `task`, `payload` and `copyOf` of a `NewJob`: what is wrong with the payload. Needs the permission to add. */
export interface PayloadCheck {
  readonly isChecked: boolean;
  /** At most 20. */
  readonly issues: readonly PayloadProblem[];
}

export interface PayloadProblem {
  /** `items[2].id`; empty for the payload itself. */
  readonly path: string;
  readonly message: string;
}

/** The answer to an action. */
export interface ActionResult {
  /** Its entry in the audit. */
  readonly audit: string;
  /** What was changed: jobs, or 1 for anything else that took effect. */
  readonly changed: number;
  /** The jobs that were changed, or the one that was added. */
  readonly ids: readonly string[];
  /** One sentence: "Retried 3 jobs; 1 is running and was left alone." */
  readonly message: string;
}

/** An action on every job that matches. */
export interface BulkRequest extends RescheduleChange {
  readonly action: JobActionName;
  readonly filter: JobQuery;
  readonly reason?: string | undefined;
  /** From the preview: jobs added later are left alone. */
  readonly upTo: string;
}

/** POST api/bulk/preview. Ask again with `cursor` until it is complete; the count grows. */
export interface BulkPreviewRequest {
  readonly action: JobActionName;
  readonly filter: JobQuery;
  readonly upTo?: string | undefined;
  readonly cursor?: string | undefined;
  /** The `count` of the answer before. */
  readonly count?: number | undefined;
}

export interface BulkPreview {
  /** How many jobs match so far. */
  readonly count: number;
  readonly isComplete: boolean;
  readonly cursor: string | null;
  readonly upTo: string;
  /** The filter in words: "dead jobs of task 'mail'". */
  readonly target: string;
}

type RunState = "running" | "done" | "stopped" | "failed" | "interrupted";

/** POST api/bulk (202) with a `BulkRequest`, GET api/bulk?id=…, POST api/bulk/stop with `{ id }`. */
export interface BulkRun {
  /** Its entry in the audit. */
  readonly id: string;
  readonly action: JobActionName;
  readonly target: string;
  readonly by: string | null;
  readonly state: RunState;
  readonly startedAt: Moment;
  readonly finishedAt: Moment | null;
  readonly matched: number;
  readonly changed: number;
  readonly isStopping: boolean;
  readonly message: string | null;
}

// ——— Live —————————————————————————————————————————————————————————————————————————————————————————————————————————————

/**
 * GET api/stream?topic=…&… with the query of the page: server-sent events. `event:` is the topic, `data:` the page's snapshot as JSON, sent when it has changed and
 * at most once a second; of an overview's or a task's series only the last points (merge by `at`); of jobs and history only the first page.
 * `event: ping` with `{}` comes at once and every 15 seconds, the first snapshot right after it. `event: bye` asks to connect again.
 */
export interface StreamEvents {
  readonly overview: Overview;
  readonly jobs: JobsPage;
  readonly job: JobDetails;
  readonly errors: ErrorsPage;
  readonly error: ErrorDetails;
  readonly tasks: TasksPage;
  readonly task: TaskDetails;
  readonly queues: QueuesPage;
  readonly cron: CronPage;
  readonly workers: WorkersPage;
  readonly limits: LimitsPage;
  readonly history: HistoryPageAnswer;
  readonly audit: AuditPage;
  readonly bulk: BulkRun;
}
export type Topic = keyof StreamEvents;

/** Answers by address, for typed fetching. */
export interface Answers extends StreamEvents {
  readonly session: Session;
  readonly count: CountAnswer;
  readonly find: FindAnswer;
  readonly form: PayloadForm;
}
