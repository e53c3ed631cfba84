import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { StreamEvents, Topic } from "../../contract.ts";
import { messageOf, type Query, RequestError, read } from "./api.ts";
import { type FeedState, openFeed } from "./live-feed.ts";
import { mergeSnapshot } from "./merge-snapshot.ts";

export interface Live<Data> {
  /** The last good snapshot, also while a newer one cannot be had. */
  readonly data: Data | undefined;
  /** Why there is nothing newer. */
  readonly error: RequestError | undefined;
  /** When the snapshot was fetched, by our clock. */
  readonly at: number;
  readonly reload: () => void;
}

interface Kept {
  readonly data: unknown;
  readonly at: number;
}

/** What pages showed last, so that going back shows them at once. */
const kept = new Map<string, Kept>();
const keptPages = 30;

let report: (state: FeedState) => void = () => undefined;
/** Told how the page in view is fed. */
export function onFeedState(listener: (state: FeedState) => void): void {
  report = listener;
}

/** The snapshot of a page, kept up to date while it is in view. An undefined query asks for nothing. */
export function useLive<Name extends Topic>(topic: Name, query: Query | undefined): Live<StreamEvents[Name]> {
  type Data = StreamEvents[Name];
  const name = query && `${topic}?${JSON.stringify(query)}`;
  const asked = useMemo(() => query, [name]);
  const [, render] = useState(0);
  const error = useRef<RequestError | undefined>(undefined);
  const known = useRef<string | undefined>(undefined);
  if (known.current !== name) {
    known.current = name;
    error.current = undefined;
  }

  const accept = useCallback(
    (data: unknown, isPart: boolean) => {
      if (name === undefined) return;
      const before = kept.get(name)?.data;
      kept.delete(name);
      kept.set(name, { data: isPart ? mergeSnapshot(before, data) : data, at: Date.now() });
      if (kept.size > keptPages) kept.delete(kept.keys().next().value!);
      error.current = undefined;
      render((count) => count + 1);
    },
    [name],
  );

  const load = useCallback(
    async (signal?: AbortSignal) => {
      if (!asked) return;
      try {
        accept(await read(topic, asked, signal), false);
      } catch (failure) {
        if (signal?.aborted) return;
        error.current = failure instanceof RequestError ? failure : new RequestError("failed", messageOf(failure));
        report("lost");
        render((count) => count + 1);
      }
    },
    [topic, asked, accept],
  );

  useEffect(() => {
    if (!asked) return;
    const leaving = new AbortController();
    void load(leaving.signal);
    const close = openFeed({
      topic,
      query: asked,
      onSnapshot: (snapshot) => accept(snapshot, true),
      poll: () => void load(leaving.signal),
      onState: (state) => report(state),
    });
    return () => {
      leaving.abort();
      close();
    };
  }, [topic, asked, load, accept]);

  const reload = useCallback(() => void load(), [load]);
  const shown = name === undefined ? undefined : kept.get(name);
  return { data: shown?.data as Data | undefined, error: error.current, at: shown?.at ?? 0, reload };
}
