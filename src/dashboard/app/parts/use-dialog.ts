import type { RefObject } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

/** The first field; without one, the button that does it, unless that does harm. */
const firstFocus =
  "input, .dialog-body :is(textarea, select), dialog:not(:has(.dialog-body :is(input, textarea, select))) .dialog-foot .button:is(.is-primary, :has(~ .is-danger))";

/** Shows a `<dialog>` as a modal one for as long as it is there. */
export function useDialogElement(): RefObject<HTMLDialogElement | null> {
  const element = useRef<HTMLDialogElement>(null);
  // Before the next key is pressed, which belongs into the dialog.
  useLayoutEffect(() => {
    const dialog = element.current;
    const opener = document.activeElement;
    if (dialog && !dialog.open) dialog.showModal();
    dialog?.querySelector<HTMLElement>(firstFocus)?.focus();
    return () => {
      dialog?.close();
      // It is taken out of the page with what was focused in it.
      window.setTimeout(() => {
        if (document.activeElement === document.body && opener instanceof HTMLElement) opener.focus();
      });
    };
  }, []);
  return element;
}
