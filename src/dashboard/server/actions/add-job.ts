import { isTaskDefinition, type TaskSpec } from "../../../index.ts";
import type { Desk } from "../desk.ts";
import { splitTrace } from "../pages/job.ts";
import { Fields } from "../read-fields.ts";
import { hasRedacted, restore } from "../redact.ts";
import { badRequest, Refusal } from "../refusal.ts";
import type { Action } from "./action.ts";

const known = ["task", "payload", "queue", "key", "keyMode", "runAt", "priority", "maxAttempts", "flags", "copyOf"];

/** Adds a job. The payload is checked by the task's definition, if the dashboard has it. */
export const addJob: Action = (desk, body) => {
  const fields = new Fields(body, known);
  const task = fields.text("task", 128);
  const copyOf = fields.optionalId("copyOf");
  const spec = readSpec(fields);
  const payload = fields.raw("payload") ?? {};
  if (copyOf === undefined && hasRedacted(payload)) {
    throw badRequest(
      "The payload has hidden values, which only a copy of a job can have: give 'copyOf', or write them out.",
    );
  }
  return {
    target: {
      task,
      ...(spec.jobKey && { key: spec.jobKey }),
      ...(spec.queueName && { queue: spec.queueName }),
      ...(copyOf && { copyOf }),
    },
    async run() {
      const whole = copyOf === undefined ? payload : await restoreFrom(desk, { copyOf, task, payload });
      const definition = Object.hasOwn(desk.tasks, task) ? desk.tasks[task] : undefined;
      const added = isTaskDefinition(definition)
        ? await desk.utils.addJob(definition, whole, spec)
        : await desk.utils.addJob(task, whole, spec);
      return { changed: 1, ids: [String(added.id)], message: `Added job ${added.id}.` };
    },
  };
};

function readSpec(fields: Fields): TaskSpec {
  const queueName = fields.optionalText("queue", 128);
  const jobKey = fields.optionalText("key", 512);
  const jobKeyMode = fields.optionalOneOf("keyMode", ["replace", "preserve_run_at", "unsafe_dedupe"]);
  const runAt = fields.optionalMoment("runAt");
  const priority = fields.optionalInteger("priority", -32_768, 32_767);
  const maxAttempts = fields.optionalInteger("maxAttempts", 1, 32_767);
  const flags = fields.texts("flags", 20);
  if (jobKeyMode !== undefined && jobKey === undefined) throw badRequest("'keyMode' needs a 'key'.");
  return {
    ...(queueName !== undefined && { queueName }),
    ...(jobKey !== undefined && { jobKey }),
    ...(jobKeyMode !== undefined && { jobKeyMode }),
    ...(runAt !== undefined && { runAt }),
    ...(priority !== undefined && { priority }),
    ...(maxAttempts !== undefined && { maxAttempts }),
    ...(flags !== undefined && { flags }),
  };
}

/** Hidden values go to a job of the same task and to the same place, so that they cannot be moved to where they would be shown. */
async function restoreFrom(
  { utils, redact }: Desk,
  { copyOf, task, payload }: { copyOf: string; task: string; payload: unknown },
): Promise<unknown> {
  if (!hasRedacted(payload)) return payload;
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
