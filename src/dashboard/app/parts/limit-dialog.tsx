import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { ActionBodies, LimitInfo, LimitKey } from "../../contract.ts";
import { formatDuration } from "../core/format.ts";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";
import { Field } from "./field.tsx";
import { nameOfKey } from "./limit-keys.tsx";

/** The limit itself, one of its keys, or a key that is to be named. */
export type LimitQuestion = "itself" | "newKey" | LimitKey;

interface LimitDialogProps {
  readonly limit: LimitInfo;
  readonly asked: LimitQuestion;
  readonly onRun: (change: Pick<ActionBodies["setLimit"], "key" | "limit" | "weight">) => void;
  readonly onClose: () => void;
}

export function LimitDialog({ limit, asked, onRun, onClose }: LimitDialogProps): JSX.Element {
  const own = typeof asked === "string" ? undefined : asked;
  const start = { limit: own?.limit ?? limit.limit, weight: own?.weight ?? limit.weight };
  const [key, setKey] = useState("");
  const [places, setPlaces] = useState(start.limit === null ? "" : String(start.limit));
  const [weight, setWeight] = useState(String(start.weight));
  const change = {
    key: asked === "newKey" ? key : own?.key,
    limit: places === "" || Number(places) === start.limit ? undefined : Number(places),
    weight: weight === "" || Number(weight) === start.weight ? undefined : Number(weight),
  };
  const isNothing = change.limit === undefined && change.weight === undefined;
  return (
    <Dialog
      title={`Change the limit of ${own ? nameOfKey(own.key) : limit.name}`}
      onClose={onClose}
      onSubmit={() => {
        onClose();
        onRun(change);
      }}
      foot={
        <>
          <Button onClick={onClose}>Keep it</Button>
          <Button type="submit" look="primary" disabled={isNothing || change.key === ""}>
            Change it for all workers
          </Button>
        </>
      }
    >
      <p class="soft">It acts within a second, in every worker, until it is taken back. Running jobs finish.</p>
      {asked === "newKey" && (
        <Field label={`Value of ${limit.path.join(".")}`}>
          {(ids) => <input {...ids} class="input" value={key} onInput={(event) => setKey(event.currentTarget.value)} />}
        </Field>
      )}
      {limit.kind !== "fair" && (
        <Amount
          label={limit.kind === "rate" ? `Jobs per ${formatDuration(limit.periodMs ?? 0)}` : "Jobs at a time"}
          hint="0 lets no job start."
          min={0}
          max={1_000_000}
          value={places}
          onChange={setPlaces}
        />
      )}
      {limit.path.length > 0 && (
        <Amount label="Jobs in a turn" min={1} max={1_000} value={weight} onChange={setWeight} />
      )}
    </Dialog>
  );
}

interface AmountProps {
  readonly label: string;
  readonly hint?: string;
  readonly min: number;
  readonly max: number;
  readonly value: string;
  readonly onChange: (value: string) => void;
}

function Amount({ label, hint, min, max, value, onChange }: AmountProps): JSX.Element {
  return (
    <Field label={label} hint={hint}>
      {(ids) => (
        <input
          {...ids}
          class="input"
          type="number"
          min={min}
          max={max}
          step="1"
          value={value}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}
