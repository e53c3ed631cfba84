import type { JSX } from "preact";

/** An error with its stack; frames of packages and of Node are faint. */
export function Stack({ text }: { readonly text: string }): JSX.Element {
  return (
    <pre class="stack" role="group" tabIndex={0} aria-label="Error">
      {text.split("\n").map((line, index) => (
        <span key={index} class={/^\s+at .*(node_modules|node:)/.test(line) ? "frame" : undefined}>
          {line}
          {"\n"}
        </span>
      ))}
    </pre>
  );
}
