import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { PayloadProblem } from "../../contract.ts";
import { meaningOf, type PayloadField, problemsOf, textOf } from "../core/payload-fields.ts";
import { Field } from "./field.tsx";

type Payload = Readonly<Record<string, unknown>>;

interface PayloadFieldsProps {
  readonly fields: readonly PayloadField[];
  readonly payload: Payload;
  readonly problems: readonly PayloadProblem[];
  readonly change: (payload: Payload) => void;
}

/** The keys of a payload, one field each; keys that the schema does not name are left as they are. */
export function PayloadFields({ fields, payload, problems, change }: PayloadFieldsProps): JSX.Element {
  return (
    <fieldset class="payload-fields">
      <legend>Payload</legend>
      {fields.map((field) => (
        <PayloadInput
          key={field.name}
          field={field}
          value={Object.hasOwn(payload, field.name) ? payload[field.name] : undefined}
          problem={problemsOf(problems, field.name, fields)}
          change={(value) => {
            const { [field.name]: _before, ...rest } = payload;
            change(value === undefined ? rest : { ...payload, [field.name]: value });
          }}
        />
      ))}
    </fieldset>
  );
}

interface PayloadInputProps {
  readonly field: PayloadField;
  readonly value: unknown;
  readonly problem: string | undefined;
  readonly change: (value: unknown) => void;
}

function PayloadInput({ field, value, problem, change }: PayloadInputProps): JSX.Element {
  // What is typed stays as it is typed ("1." on the way to 1.5), as long as it means the value.
  const [typed, setTyped] = useState("");
  const isTyped = JSON.stringify(meaningOf(field, typed)) === JSON.stringify(value);
  const text = isTyped ? typed : textOf(field, value);
  const onInput = (event: { readonly currentTarget: { readonly value: string } }): void => {
    setTyped(event.currentTarget.value);
    change(meaningOf(field, event.currentTarget.value));
  };
  const hint = [field.isRequired ? undefined : "optional", field.hint].filter(Boolean).join("; ");
  return (
    <Field label={field.name} hint={hint || undefined} problem={problem} isWide={field.kind === "json"}>
      {(ids) => {
        const common = { ...ids, "aria-invalid": problem !== undefined, "aria-required": field.isRequired };
        if (field.kind === "choice") {
          return (
            <select {...common} class="select" value={text} onChange={onInput}>
              <option value="">{field.isRequired ? "Choose …" : "(left out)"}</option>
              {field.options.map((option) => (
                <option key={JSON.stringify(option)} value={JSON.stringify(option)}>
                  {typeof option === "string" ? option : JSON.stringify(option)}
                </option>
              ))}
            </select>
          );
        }
        if (field.kind === "json") {
          return <textarea {...common} class="area" rows={3} spellcheck={false} value={text} onInput={onInput} />;
        }
        return (
          <input
            {...common}
            class="input"
            inputMode={field.kind === "number" ? "decimal" : "text"}
            value={text}
            onInput={onInput}
          />
        );
      }}
    </Field>
  );
}
