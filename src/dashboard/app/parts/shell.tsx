import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { type KeyMap, useKeys } from "../core/keyboard.ts";
import type { FeedState } from "../core/live-feed.ts";
import { go, Link, usePlace } from "../core/router.tsx";
import { useSession } from "../core/session.ts";
import { onFeedState } from "../core/use-live.ts";
import { Mark } from "./brand.tsx";
import { focusSearch } from "./filter-bar.tsx";
import { Icon } from "./icon.tsx";
import { KeyHelp } from "./key-help.tsx";
import { mainPages, pages } from "./page-list.ts";
import { Palette } from "./palette.tsx";
import { Settings } from "./settings.tsx";
import { Toasts } from "./toasts.tsx";

type Overlay = "keys" | "palette" | undefined;

/** What every page has around it. */
export function Shell({ children }: { readonly children: ComponentChildren }): JSX.Element {
  const [overlay, setOverlay] = useState<Overlay>();
  const { path } = usePlace();
  const close = (): void => setOverlay(undefined);
  useKeys({
    ...goKeys,
    "/": (event) => {
      event.preventDefault();
      focusSearch();
    },
    "?": () => setOverlay("keys"),
  });
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key.toLowerCase() !== "k" || !(event.metaKey || event.ctrlKey)) return;
      event.preventDefault();
      setOverlay("palette");
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);

  return (
    <>
      <a class="skip" href="#main" onClick={skipToMain}>
        Skip to the content
      </a>
      <header class="top">
        <Link to="/" class="brand" aria-label="Hathi, overview">
          <Mark />
          <span>Hathi</span>
        </Link>
        <nav class="nav" aria-label="Pages">
          {pages.map(({ name, to }) => (
            <Link key={to} to={to} aria-current={isCurrent(path, to) ? "page" : undefined}>
              {name}
            </Link>
          ))}
        </nav>
        <Where />
        <FeedDot />
        <button
          type="button"
          class="button is-quiet palette-button"
          aria-label="⌘K: find a page, job, task or queue"
          onClick={() => setOverlay("palette")}
        >
          <Icon name="search" />
          <kbd>⌘K</kbd>
        </button>
        <Settings onKeys={() => setOverlay("keys")} />
      </header>
      <main class="page" id="main" tabIndex={-1}>
        {children}
      </main>
      <nav class="bottom-nav" aria-label="Main pages">
        {mainPages.map(({ name, to, icon }) => (
          <Link key={to} to={to} aria-current={isCurrent(path, to) ? "page" : undefined}>
            <Icon name={icon} />
            {name}
          </Link>
        ))}
        <button type="button" onClick={() => setOverlay("palette")}>
          <Icon name="more" />
          More
        </button>
      </nav>
      <Toasts />
      {overlay === "keys" && <KeyHelp onClose={close} />}
      {overlay === "palette" && <Palette onClose={close} />}
    </>
  );
}

const goKeys: KeyMap = Object.fromEntries(pages.map(({ key, to }) => [`g ${key}`, () => go(to)]));

function isCurrent(path: string, to: string): boolean {
  return to === "/" ? path === "/" : path === to || path.startsWith(`${to}/`);
}

function skipToMain(event: MouseEvent): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function Where(): JSX.Element {
  const { title, database, schema } = useSession();
  const parts = [title, database, schema].filter((part) => part !== null);
  return <span class="where clip">{[...new Set(parts)].join(" · ")}</span>;
}

const feedWords: Readonly<Record<FeedState, readonly [string, string]>> = {
  stream: ["Live", "New data arrives as it happens."],
  polling: ["Every 5 s", "Streams do not pass here, so the page asks every five seconds."],
  lost: ["Not connected", "The server did not answer; the page keeps trying."],
  hidden: ["Resting", "The page rests while it is hidden."],
};

function FeedDot(): JSX.Element | null {
  const [state, setState] = useState<FeedState>();
  useEffect(() => onFeedState(setState), []);
  if (!state) return null;
  const [word, title] = feedWords[state];
  return (
    <span class="live-dot" data-live={state} title={title}>
      {word}
    </span>
  );
}
