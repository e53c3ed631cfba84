import type { ComponentChildren, JSX } from "preact";
import { Button } from "./button.tsx";
import { useDialogElement } from "./use-dialog.ts";

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
  readonly foot?: ComponentChildren;
  readonly className?: string;
  /** Makes its content a form. */
  readonly onSubmit?: (() => void) | undefined;
}

/** The browser's own modal dialog: it keeps the focus inside, closes with Escape and gives the focus back. */
export function Dialog({ title, onClose, children, foot, className, onSubmit }: DialogProps): JSX.Element {
  const element = useDialogElement();
  const content = (
    <>
      <div class="dialog-head">
        <h2 class="grow">{title}</h2>
        <Button look="quiet" icon="close" label="Close" onClick={onClose} />
      </div>
      <div class="dialog-body">{children}</div>
      {foot && <div class="dialog-foot">{foot}</div>}
    </>
  );
  return (
    <dialog
      ref={element}
      class={className}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClose={() => {
        // By the browser alone: it does not always ask first. One that is taken out of the page has no element any more.
        if (element.current) onClose();
      }}
      onClick={(event) => {
        if (event.target === element.current) onClose();
      }}
    >
      {onSubmit ? (
        <form
          class="dialog-form"
          onSubmit={(event) => {
            event.preventDefault();
            onSubmit();
          }}
        >
          {content}
        </form>
      ) : (
        content
      )}
    </dialog>
  );
}
