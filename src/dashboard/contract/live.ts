import type { AuditPage } from "./audit.ts";
import type { BulkRun } from "./bulk.ts";
import type { CronPage } from "./cron.ts";
import type { ErrorDetails, ErrorsPage } from "./errors.ts";
import type { HistoryPageAnswer } from "./history.ts";
import type { CountAnswer, FindAnswer, JobDetails, JobsPage } from "./jobs.ts";
import type { LimitsPage } from "./limits.ts";
import type { Overview } from "./overview.ts";
import type { PayloadForm } from "./payload-form.ts";
import type { QueuesPage } from "./queues.ts";
import type { Session } from "./session.ts";
import type { TaskDetails, TasksPage } from "./tasks.ts";
import type { WorkersPage } from "./workers.ts";

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
