import { useEffect, useRef } from "preact/hooks";

/** Keys of a page or of the whole app: `j`, `Enter`, or two after each other as `g j`. */
export type KeyMap = Readonly<Record<string, (event: KeyboardEvent) => void>>;

const maps: { readonly current: KeyMap }[] = [];
let first: string | undefined;
let firstAt = 0;

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (isTyping(event.target) || document.querySelector("dialog[open]")) return;
  if (event.key === "Enter" && event.target instanceof Element && event.target.closest("a, button, summary")) return;
  const chord = first !== undefined && event.timeStamp - firstAt < 1_500 ? `${first} ${event.key}` : undefined;
  first = undefined;
  const action = (chord && find(chord)) || find(event.key);
  if (action) {
    action(event);
    return;
  }
  first = event.key;
  firstAt = event.timeStamp;
});

function find(keys: string): ((event: KeyboardEvent) => void) | undefined {
  return maps.findLast(({ current }) => Object.hasOwn(current, keys))?.current[keys];
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) && !isCheckbox(target));
}

function isCheckbox(target: HTMLElement): boolean {
  return target instanceof HTMLInputElement && target.type === "checkbox";
}

/** While its caller is shown. Keys may follow each other faster than pages are drawn: what they do must not depend on what is drawn. */
export function useKeys(map: KeyMap): void {
  const latest = useRef(map);
  latest.current = map;
  useEffect(() => {
    maps.push(latest);
    return () => {
      maps.splice(maps.indexOf(latest), 1);
    };
  }, []);
}
