import { apiAddress, noteTime, type Query } from "./api.ts";

export type FeedState = "stream" | "polling" | "lost" | "hidden";

interface FeedOptions {
  readonly topic: string;
  readonly query: Query;
  readonly onSnapshot: (snapshot: unknown) => void;
  /** Asks for the whole snapshot again. */
  readonly poll: () => void;
  readonly onState: (state: FeedState) => void;
}

/** Nothing for this long, not even a ping: the stream is cut or held back on its way. */
const silenceMs = 25_000;
/** A stream that works says so at once. */
const firstMs = 8_000;
const pollMs = 5_000;
const retryMs = 60_000;

/**
 * Keeps a page up to date while it is visible: by a stream of server-sent events, or by polling where streams do not pass. A hidden page has
 * neither; it asks for everything when it is seen again.
 */
export function openFeed({ topic, query, onSnapshot, poll, onState }: FeedOptions): () => void {
  let source: EventSource | undefined;
  let watchdog: number | undefined;
  let poller: number | undefined;
  let retry: number | undefined;

  const listen = (): void => {
    const opened = new EventSource(apiAddress("stream", { ...query, topic }));
    source = opened;
    const expect = (ms: number): void => {
      window.clearTimeout(watchdog);
      watchdog = window.setTimeout(fallBack, ms);
    };
    const heard = (): void => {
      expect(silenceMs);
      onState("stream");
    };
    opened.addEventListener(topic, (event: Event) => {
      // The topic `error` has the name that browsers give to a stream that was cut.
      if (!(event instanceof MessageEvent)) return;
      heard();
      const snapshot: unknown = JSON.parse(String(event.data));
      noteTime(snapshot);
      onSnapshot(snapshot);
    });
    opened.addEventListener("ping", heard);
    opened.addEventListener("bye", () => {
      disconnect();
      listen();
    });
    opened.addEventListener("error", (event: Event) => {
      if (!(event instanceof MessageEvent)) fallBack();
    });
    expect(firstMs);
  };

  const fallBack = (): void => {
    disconnect();
    onState("polling");
    poll();
    poller = window.setInterval(poll, pollMs);
    retry = window.setTimeout(() => {
      disconnect();
      listen();
    }, retryMs);
  };

  const disconnect = (): void => {
    source?.close();
    window.clearTimeout(watchdog);
    window.clearInterval(poller);
    window.clearTimeout(retry);
  };

  const onVisibility = (): void => {
    disconnect();
    if (document.hidden) {
      onState("hidden");
      return;
    }
    poll();
    listen();
  };

  document.addEventListener("visibilitychange", onVisibility);
  if (!document.hidden) listen();
  return () => {
    document.removeEventListener("visibilitychange", onVisibility);
    disconnect();
  };
}
