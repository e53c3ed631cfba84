import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { ActionBodies, LimitInfo } from "../../contract.ts";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";
import { Field } from "./field.tsx";

interface LimitDialogProps {
  readonly limit: LimitInfo;
  /** The key whose own limit it is; the general one otherwise. */
  readonly keyName: string | undefined;
  readonly start: number | null;
  readonly onRun: (change: Pick<ActionBodies["setLimit"], "concurrency" | "rate">) => void;
  readonly onClose: () => void;
}

export function LimitDialog({ limit, keyName, start, onRun, onClose }: LimitDialogProps): JSX.Element {
  const { name, rate } = limit;
  const [places, setPlaces] = useState(start === null ? "" : String(start));
  const [perPeriod, setPerPeriod] = useState(rate ? String(rate.limit) : "");
  const hasRate = rate !== null && keyName === undefined;
  const change = {
    concurrency: places === "" ? undefined : Number(places),
    rate:
      hasRate && perPeriod !== ""
        ? { limit: Number(perPeriod), periodMs: rate.periodMs, burst: rate.burst }
        : undefined,
  };
  return (
    <Dialog
      title={`Change the limit of ${keyName ?? name}`}
      onClose={onClose}
      onSubmit={() => {
        onClose();
        onRun(change);
      }}
      foot={
        <>
          <Button onClick={onClose}>Keep it</Button>
          <Button type="submit" look="primary" disabled={change.concurrency === undefined && change.rate === undefined}>
            Change it for all workers
          </Button>
        </>
      }
    >
      <p class="soft">It takes effect at once, in every worker, until it is taken back. Running jobs finish.</p>
      {(limit.concurrency !== null || keyName !== undefined) && (
        <Field label="Jobs at a time" hint="0 lets no job start.">
          {(ids) => (
            <input
              {...ids}
              class="input"
              type="number"
              min="0"
              step="1"
              value={places}
              onInput={(event) => setPlaces(event.currentTarget.value)}
            />
          )}
        </Field>
      )}
      {hasRate && (
        <Field label="Jobs per period">
          {(ids) => (
            <input
              {...ids}
              class="input"
              type="number"
              min="1"
              step="1"
              value={perPeriod}
              onInput={(event) => setPerPeriod(event.currentTarget.value)}
            />
          )}
        </Field>
      )}
    </Dialog>
  );
}
