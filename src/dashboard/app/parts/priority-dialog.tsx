import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";
import { Field } from "./field.tsx";

interface PriorityDialogProps {
  readonly id: string;
  readonly priority: number;
  readonly onRun: (priority: number) => void;
  readonly onClose: () => void;
}

export function PriorityDialog({ id, priority, onRun, onClose }: PriorityDialogProps): JSX.Element {
  const [text, setText] = useState(String(priority));
  const chosen = Number(text);
  const isValid = text.trim() !== "" && Number.isInteger(chosen) && Math.abs(chosen) <= 32_767;
  return (
    <Dialog
      title={`Change the priority of job #${id}`}
      onClose={onClose}
      onSubmit={() => {
        onClose();
        onRun(chosen);
      }}
      foot={
        <>
          <Button onClick={onClose}>Keep it</Button>
          <Button type="submit" look="primary" disabled={!isValid || chosen === priority}>
            Set to {isValid ? chosen : "…"}
          </Button>
        </>
      }
    >
      <Field label="Priority" hint="A lower number runs first. Most jobs have 0.">
        {(ids) => (
          <input
            {...ids}
            class="input"
            type="number"
            step="1"
            min="-32768"
            max="32767"
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        )}
      </Field>
    </Dialog>
  );
}
