import type { JSX } from "preact";

interface StackProps {
  readonly text: string;
  readonly label?: string;
}

/** An error or the frames of its stack; frames of packages and of Node are faint. */
export function Stack({ text, label = "Error" }: StackProps): JSX.Element {
  return (
    <pre class="stack" role="group" tabIndex={0} aria-label={label}>
      {text.split("\n").map((line, index) => (
        <span key={index} class={isFrame(line) && !isOwnFrame(line) ? "frame" : undefined}>
          {line}
          {"\n"}
        </span>
      ))}
    </pre>
  );
}

/** The frames of a failure, to unfold: folded, it shows the first that is the application's own. */
export function FoldedStack({ stack, isOpen }: { readonly stack: string; readonly isOpen: boolean }): JSX.Element {
  const lines = stack.split("\n");
  const first = lines.find(isOwnFrame) ?? lines.find(isFrame) ?? "";
  return (
    <details open={isOpen}>
      <summary class="stack-summary">
        Stack <code class="stack-first wrap">{first.trim()}</code>
      </summary>
      <Stack text={stack.replaceAll(/^ {2}/gm, "")} label="Stack" />
    </details>
  );
}

function isFrame(line: string): boolean {
  return /^\s+at /.test(line);
}

function isOwnFrame(line: string): boolean {
  return isFrame(line) && !/node_modules|node:|\(<anonymous>\)|\(native\)/.test(line);
}
