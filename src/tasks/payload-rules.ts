import { PayloadError } from "../errors.ts";
import { $$definition, isTaskDefinition, type PayloadIssue, type StandardSchema } from "../task-definition.ts";

/** What is known of the payloads that a task takes. */
export interface PayloadRules {
  /** What a validator says that new jobs must have, as JSON Schema (draft 2020-12); null if its library cannot tell. */
  readonly jsonSchema: Readonly<Record<string, unknown>> | null;
  /** What is wrong with the payload of a new job; nothing, if it can be added. */
  check(payload: unknown): Promise<readonly PayloadIssue[]>;
}

/** What a task's validator asks of payloads; null if nothing checks them, since the task is a plain function or was defined without a validator. */
export function payloadRulesOf(task: unknown): PayloadRules | null {
  if (!isTaskDefinition(task)) return null;
  const { validator, takesBatches = false, prepare } = task[$$definition];
  if (!validator) return null;
  const jsonSchema = describe(validator);
  return {
    jsonSchema: jsonSchema && takesBatches ? { type: "array", items: jsonSchema, minItems: 1 } : jsonSchema,
    async check(payload) {
      try {
        await prepare(payload, {});
        return [];
      } catch (error) {
        if (error instanceof PayloadError) return error.issues;
        throw error;
      }
    },
  };
}

function describe(validator: StandardSchema): Record<string, unknown> | null {
  try {
    const described = validator["~standard"].jsonSchema?.input({ target: "draft-2020-12" as never });
    return typeof described === "object" && described !== null ? (described as Record<string, unknown>) : null;
  } catch {
    return null; // it has a part that JSON Schema has no word for
  }
}
