import type { JSX } from "preact";
import type { RescheduleChange } from "../../contract.ts";
import { Field, localValue, momentOf } from "./field.tsx";

/** What an action needs beside its jobs. */
export interface Details extends RescheduleChange {
  readonly reason?: string | undefined;
}

interface DetailsProps {
  readonly asks: "reason" | "schedule" | undefined;
  readonly value: Details;
  readonly onChange: (details: Details) => void;
}

export function ActionDetails({ asks, value, onChange }: DetailsProps): JSX.Element | null {
  if (asks === "reason") {
    return (
      <Field label="Reason" hint="Optional. It is kept with the job and in the audit.">
        {(ids) => (
          <input
            {...ids}
            class="input"
            maxLength={500}
            value={value.reason ?? ""}
            onInput={(event) => onChange({ ...value, reason: event.currentTarget.value || undefined })}
          />
        )}
      </Field>
    );
  }
  if (asks !== "schedule") return null;
  const number = (text: string): number | undefined => (text === "" ? undefined : Number(text));
  return (
    <>
      <Field label="Run at" hint="In your time zone. Leave empty to keep it.">
        {(ids) => (
          <input
            {...ids}
            class="input"
            type="datetime-local"
            step="1"
            value={value.runAt ? localValue(new Date(value.runAt)) : ""}
            onChange={(event) => onChange({ ...value, runAt: momentOf(event.currentTarget.value) })}
          />
        )}
      </Field>
      <Field label="Priority" hint="A lower number runs first.">
        {(ids) => (
          <input
            {...ids}
            class="input"
            type="number"
            step="1"
            min="-32768"
            max="32767"
            value={value.priority ?? ""}
            onInput={(event) => onChange({ ...value, priority: number(event.currentTarget.value) })}
          />
        )}
      </Field>
      <Field label="Attempts at most">
        {(ids) => (
          <input
            {...ids}
            class="input"
            type="number"
            step="1"
            min="1"
            max="32767"
            value={value.maxAttempts ?? ""}
            onInput={(event) => onChange({ ...value, maxAttempts: number(event.currentTarget.value) })}
          />
        )}
      </Field>
    </>
  );
}

/** A reschedule that changes nothing is no action. */
export function isComplete(asks: DetailsProps["asks"], { runAt, priority, maxAttempts }: Details): boolean {
  return asks !== "schedule" || runAt !== undefined || priority !== undefined || maxAttempts !== undefined;
}
