import { Fragment, type JSX } from "preact";
import { Dialog } from "./dialog.tsx";
import { pages } from "./page-list.ts";

const keys: readonly (readonly [string, string])[] = [
  ["/", "Search"],
  ["j", "Next row"],
  ["k", "Previous row"],
  ["x", "Select the row"],
  ["Enter", "Open the row"],
  ["⌘ K", "Find a page, job, task or queue"],
  ["?", "This help"],
  ...pages.map(({ key, name }) => [`g ${key}`, name] as const),
];

export function KeyHelp({ onClose }: { readonly onClose: () => void }): JSX.Element {
  return (
    <Dialog title="Keyboard" onClose={onClose}>
      <dl class="keys">
        {keys.map(([key, what]) => (
          <Fragment key={key}>
            <dt>
              {key.split(" ").map((part) => (
                <kbd key={part}>{part}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </Fragment>
        ))}
      </dl>
    </Dialog>
  );
}
