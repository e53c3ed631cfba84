import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { base, withoutBase } from "./base.ts";

/** The address below the base path. Everything a page shows follows from it, so every state has a link. */
export interface Place {
  readonly path: string;
  readonly query: URLSearchParams;
}

const listeners = new Set<() => void>();
let place = readPlace();

window.addEventListener("popstate", changed);

function readPlace(): Place {
  return { path: withoutBase(window.location.pathname), query: new URLSearchParams(window.location.search) };
}

function changed(): void {
  place = readPlace();
  for (const listener of listeners) listener();
}

/** Goes to an address below the base path. */
export function go(to: string, { replace = false }: { readonly replace?: boolean } = {}): void {
  const url = `${base}${to}`;
  if (url === window.location.pathname + window.location.search) return;
  if (replace) window.history.replaceState(null, "", url);
  else window.history.pushState(null, "", url);
  const isOtherPage = withoutBase(window.location.pathname) !== place.path;
  changed();
  if (isOtherPage) window.scrollTo(0, 0);
}

export function usePlace(): Place {
  const [now, setNow] = useState(place);
  useEffect(() => {
    const listener = (): void => setNow(place);
    listeners.add(listener);
    listener();
    return () => {
      listeners.delete(listener);
    };
  }, []);
  return now;
}

/** `/jobs?state=dead`: the path with every value that is neither empty nor undefined. */
export function address(path: string, query: Readonly<Record<string, string | undefined>> = {}): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value) params.set(name, value);
  const text = params.toString();
  return text ? `${path}?${text}` : path;
}

/** The current address with some values changed; undefined removes one. */
export function changeQuery(changes: Readonly<Record<string, string | undefined>>): string {
  return address(place.path, { ...Object.fromEntries(place.query), ...changes });
}

interface LinkProps {
  readonly to: string;
  readonly class?: string | undefined;
  readonly title?: string | undefined;
  readonly "aria-current"?: "page" | undefined;
  readonly "aria-label"?: string;
  readonly children?: ComponentChildren;
}

/** A real link, so that a middle click and "copy link" work; a plain click stays on the page. */
export function Link({ to, children, ...rest }: LinkProps): JSX.Element {
  const follow = (event: MouseEvent): void => {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    go(to);
  };
  return (
    <a {...rest} href={`${base}${to}`} onClick={follow}>
      {children}
    </a>
  );
}
