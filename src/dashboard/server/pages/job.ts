import type { FoundJob, JobExplanation, LinkedJob as LinkedRow, PresentJob } from "../../../index.ts";
import type { JobActionName, JobDetails, JobStateName, LinkedJob, RelatedJob, Why } from "../../contract.ts";
import type { DashboardContext, Page } from "../context.ts";
import { toSearch } from "../queries.ts";
import { Fields } from "../read-fields.ts";
import { redact, redactKey } from "../redact.ts";
import { Refusal } from "../refusal.ts";
import { moment, toJobRow } from "../rows.ts";
import { timelineOf } from "./timeline.ts";

export const job: Page<JobDetails> = async (context, { query }) => {
  const id = new Fields(query, ["id"]).id("id");
  const found = await context.cache.get(`job ${id}`, 900, () => context.utils.getJob(id));
  if (!found)
    throw new Refusal(
      "not-found",
      `Nothing is known of job ${id}: it never existed, or it ended and no history was kept.`,
    );
  const explained = await context.cache.get(`why ${id}`, 900, () => context.utils.explainJob(id));
  const { payload, trace } = splitTrace(found.payload);
  const links = await context.cache.get(`links ${id}`, 5_000, () => context.utils.getJobLinks(id));
  const related = trace
    ? await context.cache.get(`trace ${id}`, 5_000, () => findRelated(context, id, trace.traceId))
    : [];
  const linkedIds = new Set([...links.added_by, ...links.added].map((linked) => linked.id));
  const now = new Date();
  const { id: _id, state, task, queue, key, ...details } = isPresent(found) ? toJobRow(found) : nothingOf(found);
  return {
    now: moment(now),
    id,
    state,
    outcome: isPresent(found) ? null : found.outcome,
    finishedAt: isPresent(found) ? null : moment(found.finished_at),
    task,
    queue,
    key,
    details: isPresent(found) ? (details as JobDetails["details"]) : null,
    lastError: clip((isPresent(found) ? found.last_error : found.history.at(-1)?.error) ?? null),
    ...shownValue("payload", payload, context.redact),
    payloadBytes: bytesOf(payload),
    ...shownValue("result", isPresent(found) ? undefined : found.result, context.redact),
    why: isPresent(found) ? whyOf(explained, context.redact) : [],
    timeline: timelineOf(found, now),
    addedBy: links.added_by.map(toLinked),
    added: links.added.map(toLinked),
    hasAddedMore: links.has_more,
    trace,
    related: related.filter((other) => !linkedIds.has(other.id)),
    actions: isPresent(found) ? actionsByState[found.state] : [],
  };
};

/** What makes sense for a job as it is. */
const actionsByState: Readonly<Record<JobStateName, readonly JobActionName[]>> = {
  waiting: ["reschedule", "cancel", "fail", "remove"],
  scheduled: ["runNow", "reschedule", "cancel", "fail", "remove"],
  running: ["cancel"],
  dead: ["retry", "reschedule", "remove"],
};

function isPresent(job: FoundJob): job is PresentJob {
  return job.state !== "finished";
}

function nothingOf(job: Exclude<FoundJob, PresentJob>): Pick<JobDetails, "id" | "state" | "task" | "queue" | "key"> {
  return { id: job.id, state: job.state, task: job.task_identifier, queue: job.queue_name, key: job.key };
}

const mostBytes = 256 * 1024;

function bytesOf(value: unknown): number | null {
  return value === undefined || value === null ? null : Buffer.byteLength(JSON.stringify(value));
}

/** Left out if there is none or if it is too large. */
function shownValue(
  name: "payload" | "result",
  value: unknown,
  hidden: readonly string[],
): { payload?: unknown; result?: unknown } {
  const bytes = bytesOf(value);
  return bytes === null || bytes > mostBytes ? {} : { [name]: redact(value, hidden) };
}

function clip(text: string | null): string | null {
  return text !== null && text.length > 50_000 ? `${text.slice(0, 50_000)}…` : text;
}

function whyOf({ reasons }: JobExplanation, hidden: readonly string[]): Why[] {
  return reasons.map((reason) => ({
    kind: reason.kind,
    message: withoutCommand(withoutHiddenKey(reason, hidden)),
    link: linkOf(reason),
  }));
}

/** The page has buttons for what the command line has commands for. */
function withoutCommand(message: string): string {
  return message.replace(/ To [a-z ]+: hathi [^\n]*$/, "");
}

/** The key of a limit is a part of the payload. */
function withoutHiddenKey(reason: JobExplanation["reasons"][number], hidden: readonly string[]): string {
  if (reason.kind !== "limited" || reason.key === null) return reason.message;
  const shown = redactKey(reason.key, reason.path, hidden);
  return shown === reason.key ? reason.message : reason.message.replaceAll(`'${reason.key}'`, () => `'${shown}'`);
}

function linkOf(reason: JobExplanation["reasons"][number]): string | null {
  switch (reason.kind) {
    case "queue-held":
      return reason.job ? `jobs/${reason.job.id}` : "queues";
    case "queue-order":
      return `jobs${toSearch({ queue: reason.queue })}`;
    case "paused":
      return "limits";
    case "overrunning":
      return `jobs/${reason.job.id}`;
    case "locked":
    case "no-worker":
    case "no-worker-for-task":
      return "workers";
    default:
      return null;
  }
}

function toLinked({ id, task_identifier: task, state, outcome }: LinkedRow): LinkedJob {
  return { id, task, state: outcome ?? (state === "finished" ? null : state) };
}

interface Trace {
  readonly traceId: string;
  readonly spanId: string;
}

/** The payload as its task sees it, and the trace that the job was added in. */
export function splitTrace(payload: unknown): { payload: unknown; trace: Trace | null } {
  if (typeof payload !== "object" || payload === null || Array.isArray(payload)) return { payload, trace: null };
  const { _trace: carried, ...rest } = payload as { _trace?: unknown };
  const { trace_id: traceId, span_id: spanId } = (
    typeof carried === "object" && carried !== null ? carried : {}
  ) as Record<string, unknown>;
  const isTrace = typeof traceId === "string" && /^[0-9a-f]{32}$/.test(traceId) && typeof spanId === "string";
  return isTrace ? { payload: rest, trace: { traceId, spanId } } : { payload, trace: null };
}

/** Jobs of the same trace are added close to each other, so that is where they are looked for. */
const nearby = 5_000;

async function findRelated({ utils }: DashboardContext, id: string, traceId: string): Promise<RelatedJob[]> {
  const filter = { search: traceId };
  const before = await utils.listJobs(filter, { after: id, limit: 10, lookAt: nearby });
  const { ids } = await utils.scanJobs(filter, { after: id, lookAt: nearby });
  const after = await Promise.all(ids.slice(0, 20).map((other) => utils.getJob(other)));
  return [
    ...after.flatMap((other): RelatedJob[] =>
      other?.task_identifier ? [{ id: other.id, added: "later", task: other.task_identifier, state: other.state }] : [],
    ),
    ...before.jobs.map(
      (other): RelatedJob => ({
        id: other.id,
        added: "earlier",
        task: other.task_identifier,
        state: other.state,
      }),
    ),
  ];
}
