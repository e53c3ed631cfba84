import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { PayloadForm, PayloadProblem } from "../../contract.ts";
import { parsePayload } from "../core/job-draft.ts";
import { fieldsOf, problemsOf } from "../core/payload-fields.ts";
import { Button } from "./button.tsx";
import { Field } from "./field.tsx";
import { PayloadFields } from "./payload-fields.tsx";

interface PayloadEditorProps {
  /** What the server knows of the task; undefined until it has said so. */
  readonly form: PayloadForm | undefined;
  /** JSON, or on the way to it. */
  readonly text: string;
  readonly problems: readonly PayloadProblem[];
  /** The job could not be added. */
  readonly problem: string | undefined;
  readonly isCopy: boolean;
  readonly change: (text: string) => void;
}

/** The payload of a new job: a field for each key where the task's schema names them, and JSON otherwise or if one prefers. */
export function PayloadEditor({ form, text, problems, problem, isCopy, change }: PayloadEditorProps): JSX.Element {
  // Whoever is about to write JSON goes on with it: the fields, which come later, would take the text area away.
  const [prefersJson, setPrefersJson] = useState(false);
  const json = parsePayload(text);
  const value = json.value ?? {};
  const isObject = json.problem === undefined && typeof value === "object" && value !== null && !Array.isArray(value);
  const fields = fieldsOf(form?.schema ?? null);
  const showsFields = fields !== undefined && isObject && !prefersJson;
  const rest = problemsOf(problems, null, showsFields ? fields : []);
  const wrong = json.problem ?? problem ?? rest;
  return (
    <div class="is-wide payload-editor">
      {fields && (
        <div class="row">
          <Button look="quiet" disabled={!isObject} onClick={() => setPrefersJson(!prefersJson)}>
            {showsFields ? "Edit as JSON" : "Edit in fields"}
          </Button>
        </div>
      )}
      {showsFields ? (
        <>
          <PayloadFields
            fields={fields}
            payload={value as Readonly<Record<string, unknown>>}
            problems={problems}
            change={(payload) => change(JSON.stringify(payload, null, 2))}
          />
          {wrong && (
            <p class="problem" role="alert">
              {wrong}
            </p>
          )}
        </>
      ) : (
        <Field
          label="Payload (JSON)"
          problem={wrong}
          hint={isCopy ? "Values shown as ••• are copied as they are." : undefined}
        >
          {(ids) => (
            <textarea
              {...ids}
              class="area"
              rows={Math.min(24, Math.max(6, text.split("\n").length + 1))}
              spellcheck={false}
              aria-invalid={wrong !== undefined}
              value={text}
              onFocus={() => setPrefersJson(true)}
              onInput={(event) => change(event.currentTarget.value)}
            />
          )}
        </Field>
      )}
    </div>
  );
}
