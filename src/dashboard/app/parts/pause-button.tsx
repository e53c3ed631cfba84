import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { PauseInfo, PauseTargetBody } from "../../contract.ts";
import { useCan } from "../core/session.ts";
import { useAction } from "../core/use-action.ts";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";
import { Field, momentOf } from "./field.tsx";

interface PauseButtonProps {
  readonly target: PauseTargetBody;
  readonly pause: PauseInfo | null;
  readonly reload: () => void;
  readonly small?: boolean;
  /** "Drain" for a worker: it finishes what runs and starts nothing. */
  readonly word?: string;
  /** Instead of the word alone. */
  readonly text?: string;
}

/** What is paused, in words: "task mail/send", "everything". */
export function nameOf({ kind, name }: PauseTargetBody): string {
  return kind === "all" ? "everything" : `${kindOf(kind)} ${name}`;
}

function kindOf(kind: PauseTargetBody["kind"]): string {
  return kind === "cron" ? "cron entry" : kind;
}

export function PauseButton({
  target,
  pause,
  reload,
  small = false,
  word = "Pause",
  text = word,
}: PauseButtonProps): JSX.Element | null {
  const can = useCan();
  const { run, isBusy } = useAction(reload);
  const [isAsked, setAsked] = useState(false);
  const isOwn = pause !== null && pause.kind === target.kind;
  if (isOwn) {
    if (!can("resume")) return null;
    const { until, reason } = pause;
    const undo = (): void => void run("pause", { target, until: until ?? undefined, reason: reason ?? undefined });
    return (
      <Button
        small={small}
        icon="play"
        disabled={isBusy}
        label={`Resume ${nameOf(target)}`}
        onClick={() => void run("resume", { target }, { undo })}
      >
        Resume
      </Button>
    );
  }
  if (!can("pause")) return null;
  return (
    <>
      <Button
        small={small}
        icon={word === "Pause" ? "pause" : "drain"}
        disabled={isBusy}
        label={`${word} ${nameOf(target)}`}
        onClick={() => setAsked(true)}
      >
        {text}
      </Button>
      {isAsked && (
        <PauseDialog
          word={word}
          target={target}
          onClose={() => setAsked(false)}
          onRun={(until, reason) =>
            void run("pause", { target, until, reason }, { undo: () => void run("resume", { target }) })
          }
        />
      )}
    </>
  );
}

interface PauseDialogProps {
  readonly word: string;
  readonly target: PauseTargetBody;
  readonly onRun: (until: string | undefined, reason: string | undefined) => void;
  readonly onClose: () => void;
}

function PauseDialog({ word, target, onRun, onClose }: PauseDialogProps): JSX.Element {
  const [until, setUntil] = useState("");
  const [reason, setReason] = useState("");
  return (
    <Dialog
      title={`${word} ${nameOf(target)}?`}
      onClose={onClose}
      onSubmit={() => {
        onClose();
        onRun(momentOf(until), reason || undefined);
      }}
      foot={
        <>
          <Button onClick={onClose}>Let it run</Button>
          <Button type="submit" look="primary">
            {word} {target.kind === "all" ? "everything" : `this ${kindOf(target.kind)}`}
          </Button>
        </>
      }
    >
      <p class="soft">
        {target.kind === "cron"
          ? "It adds no jobs until it is resumed; jobs that it has added run as ever."
          : "Running jobs finish; no new ones start until it is resumed. Jobs can still be added."}
      </p>
      <Field label="Until" hint="It ends by itself at this time. Leave empty to resume by hand.">
        {(ids) => (
          <input
            {...ids}
            class="input"
            type="datetime-local"
            value={until}
            onInput={(event) => setUntil(event.currentTarget.value)}
          />
        )}
      </Field>
      <Field label="Reason" hint="Shown wherever the pause is shown.">
        {(ids) => (
          <input
            {...ids}
            class="input"
            maxLength={500}
            value={reason}
            onInput={(event) => setReason(event.currentTarget.value)}
          />
        )}
      </Field>
    </Dialog>
  );
}
