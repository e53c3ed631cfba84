import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Button } from "./button.tsx";
import { tell } from "./toasts.tsx";

export function CopyButton({ text }: { readonly text: string }): JSX.Element {
  const [isCopied, setCopied] = useState(false);
  const copy = (): void => {
    // Browsers only have a clipboard where the page is served securely.
    const done =
      navigator.clipboard?.writeText(text) ?? Promise.reject(new Error("There is no clipboard on this page."));
    done.then(
      () => {
        setCopied(true);
        window.setTimeout(() => setCopied(false), 2_000);
      },
      () => tell("The browser does not allow to copy here.", { isBad: true }),
    );
  };
  return (
    <Button small look="quiet" icon={isCopied ? "succeeded" : "copy"} onClick={copy}>
      {isCopied ? "Copied" : "Copy"}
    </Button>
  );
}
