import { isTaskDefinition, type TaskSpec } from "../../../index.ts";
import { fitPayload, readGivenPayload } from "../new-payload.ts";
import { Fields } from "../read-fields.ts";
import { badRequest } from "../refusal.ts";
import type { Action } from "./action.ts";

const known = ["task", "payload", "queue", "key", "keyMode", "runAt", "priority", "maxAttempts", "flags", "copyOf"];

/** Adds a job. The payload is checked by the task's definition, if the dashboard has it. */
export const addJob: Action = (context, body) => {
  const fields = new Fields(body, known);
  const given = readGivenPayload(fields);
  const { task, copyOf } = given;
  const spec = readSpec(fields);
  return {
    target: {
      task,
      ...(spec.jobKey && { key: spec.jobKey }),
      ...(spec.queueName && { queue: spec.queueName }),
      ...(copyOf && { copyOf }),
    },
    async run() {
      const whole = await fitPayload(context, given);
      const definition = Object.hasOwn(context.tasks, task) ? context.tasks[task] : undefined;
      const added = isTaskDefinition(definition)
        ? await context.utils.addJob(definition, whole, spec)
        : await context.utils.addJob(task, whole, spec);
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
