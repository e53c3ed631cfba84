import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** Shows a `<dialog>` as a modal one for as long as it is there. */
export function useDialogElement(): RefObject<HTMLDialogElement | null> {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = element.current;
    if (dialog && !dialog.open) dialog.showModal();
    return () => dialog?.close();
  }, []);
  return element;
}
