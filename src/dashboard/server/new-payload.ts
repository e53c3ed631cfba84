import { type PayloadIssue, type PayloadRules, payloadRulesOf } from "../../index.ts";
import type { PayloadCheck, PayloadForm } from "../contract.ts";
import type { DashboardContext, Page } from "./context.ts";
import { splitTrace } from "./pages/job.ts";
import { Fields } from "./read-fields.ts";
import { hasRedacted, restore, restoredTexts } from "./redact.ts";
import { badRequest, Refusal } from "./refusal.ts";

/** A description that is larger is no help to a person. */
const mostSchemaBytes = 64 * 1024;

/** The payload of a job that is to be added, as the form has it. */
export interface GivenPayload {
  readonly task: string;
  readonly payload: unknown;
  /** The job whose hidden values it takes over. */
  readonly copyOf: string | undefined;
}

export function readGivenPayload(fields: Fields): GivenPayload {
  const task = fields.text("task", 128);
  const copyOf = fields.optionalId("copyOf");
  const payload = fields.raw("payload") ?? {};
  if (copyOf === undefined && hasRedacted(payload)) {
    throw badRequest(
      "The payload has hidden values, which only a copy of a job can have: give 'copyOf', or write them out.",
    );
  }
  return { task, payload, copyOf };
}

/** What the server knows of a task's payload. */
export const form: Page<PayloadForm> = async (context, { query }) => {
  const task = new Fields(query, ["task"]).text("task", 128);
  const rules = rulesOf(context, task);
  const schema = rules?.jsonSchema ?? null;
  const isSmall = schema !== null && Buffer.byteLength(JSON.stringify(schema)) <= mostSchemaBytes;
  return {
    task,
    isKnown: Object.hasOwn(context.tasks, task),
    isChecked: rules !== null,
    schema: isSmall ? schema : null,
  };
};

/** Says what is wrong with a payload, and adds nothing. */
export async function checkPayload(context: DashboardContext, body: unknown): Promise<PayloadCheck> {
  const given = readGivenPayload(new Fields(body, ["task", "payload", "copyOf"]));
  const rules = rulesOf(context, given.task);
  if (!rules) return { isChecked: false, issues: [] };
  return { isChecked: true, issues: await issuesOf(rules, given, await wholePayload(context, given)) };
}

/** The payload with its hidden values; refused if it does not fit the task. */
export async function fitPayload(context: DashboardContext, given: GivenPayload): Promise<unknown> {
  const whole = await wholePayload(context, given);
  const rules = rulesOf(context, given.task);
  const issues = rules ? await issuesOf(rules, given, whole) : [];
  if (issues.length === 0) return whole;
  const sentences = issues.map(({ path, message }) => (path === "" ? message : `'${path}': ${message}`));
  throw badRequest(`The payload does not fit task '${given.task}': ${sentences.join("; ")}.`);
}

function rulesOf({ tasks }: DashboardContext, task: string): PayloadRules | null {
  return Object.hasOwn(tasks, task) ? payloadRulesOf(tasks[task]) : null;
}

const mostIssues = 20;

/** Validators like to quote what they refuse. */
async function issuesOf(
  rules: PayloadRules,
  { payload }: GivenPayload,
  whole: unknown,
): Promise<readonly PayloadIssue[]> {
  const hidden = restoredTexts(payload, whole);
  const issues = await rules.check(whole);
  return issues.slice(0, mostIssues).map(({ path, message }) => {
    const quotes = hidden.some((text) => message.includes(text));
    return { path, message: quotes ? "A hidden value does not fit: write it out" : message.replace(/\.$/, "") };
  });
}

/** Hidden values go to a job of the same task and to the same place, so that they cannot be moved to where they would be shown. */
async function wholePayload(
  { utils, redact }: DashboardContext,
  { task, payload, copyOf }: GivenPayload,
): Promise<unknown> {
  if (copyOf === undefined || !hasRedacted(payload)) return payload;
  const original = await utils.getJob(copyOf);
  if (!original)
    throw new Refusal("conflict", `Job ${copyOf} is gone, so its hidden values cannot be copied: write them out.`);
  if (original.task_identifier !== task) {
    throw badRequest(`Hidden values can be copied to a job of the same task only, '${original.task_identifier}'.`);
  }
  const whole = restore(payload, splitTrace(original.payload).payload, redact);
  if (hasRedacted(whole))
    throw badRequest("The payload has a hidden value that the original does not have: write it out.");
  return whole;
}
