import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { JobActionName } from "../../contract.ts";
import { ActionDetails, type Details, isComplete } from "./action-details.tsx";
import { actionWords, nameEffect } from "./action-words.ts";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";

interface ActionDialogProps {
  readonly action: JobActionName;
  readonly count: number;
  /** Which jobs, in words. */
  readonly target: string;
  readonly start?: Details;
  readonly onRun: (details: Details) => void;
  readonly onClose: () => void;
}

/** Says what an action will do to which jobs, and asks for what it needs, before it is done. */
export function ActionDialog({ action, count, target, start = {}, onRun, onClose }: ActionDialogProps): JSX.Element {
  const { effect, isDanger, asks } = actionWords[action];
  const [details, setDetails] = useState<Details>(start);
  return (
    <Dialog
      title={`${nameEffect(action, count)}?`}
      onClose={onClose}
      onSubmit={() => {
        onClose();
        onRun(details);
      }}
      foot={
        <>
          <Button onClick={onClose}>Keep as it is</Button>
          <Button type="submit" look={isDanger ? "danger" : "primary"} disabled={!isComplete(asks, details)}>
            {nameEffect(action, count)}
          </Button>
        </>
      }
    >
      <p class="wrap">
        {target}. <span class="soft">{effect}</span>
      </p>
      <ActionDetails asks={asks} value={details} onChange={setDetails} />
    </Dialog>
  );
}
