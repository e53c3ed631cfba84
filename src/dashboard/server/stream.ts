import { clearTimeout, setTimeout } from "node:timers";
import type { Topic } from "../contract.ts";
import { answer } from "./answers.ts";
import { Refusal, refusalOf } from "./refusal.ts";

const tickMs = 1_000;
const pingMs = 15_000;
/** Then the browser connects again, and whoever may no longer look is turned away. */
const lifeMs = 10 * 60_000;
const mostStreams = 200;

/** Snapshots that go on as server-sent events, one stream for each tab. */
export class Streams {
  readonly #ends = new Set<() => void>();

  /** `read` gives the snapshot; what has not changed but for its time is not sent. */
  open(topic: Topic, read: () => Promise<unknown>): Response {
    if (this.#ends.size >= mostStreams) {
      throw new Refusal("busy", "Too many pages are open; this one will be refreshed now and then.", {
        "retry-after": "60",
      });
    }
    const encoder = new TextEncoder();
    let timer: NodeJS.Timeout | undefined;
    let end = (): void => undefined;
    const body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          let isOpen = true;
          const openedAt = process.uptime() * 1000;
          let [pingedAt, sent] = [Number.NEGATIVE_INFINITY, ""];
          const send = (event: string, data: string): void =>
            controller.enqueue(encoder.encode(`event: ${event}\ndata: ${data}\n\n`));
          end = () => {
            if (!isOpen) return;
            isOpen = false;
            clearTimeout(timer);
            this.#ends.delete(end);
            try {
              send("bye", "{}");
              controller.close();
            } catch {
              // The browser was faster.
            }
          };
          this.#ends.add(end);
          const tick = async (): Promise<void> => {
            if (process.uptime() * 1000 - openedAt > lifeMs) return end();
            if (process.uptime() * 1000 - pingedAt >= pingMs) {
              send("ping", "{}");
              pingedAt = process.uptime() * 1000;
            }
            // A browser that does not read is not written to.
            const hasRoom = (controller.desiredSize ?? 0) > 0;
            const snapshot = hasRoom ? await read().catch(explain) : undefined;
            if (!isOpen) return;
            const text = JSON.stringify(snapshot);
            const compared = JSON.stringify(snapshot, (key, value: unknown) => (key === "now" ? undefined : value));
            if (snapshot !== undefined && compared !== sent) {
              send(topic, text);
              sent = compared;
            }
            timer = setTimeout(again, tickMs);
          };
          const again = (): void => void tick().catch(end);
          again();
        },
        cancel: () => end(),
      },
      // A few snapshots, and then the browser has to catch up.
      { highWaterMark: 4 },
    );
    return answer(body, "text/event-stream; charset=utf-8", {
      headers: { "x-accel-buffering": "no", "cache-control": "no-store, no-transform" },
    });
  }

  close(): void {
    for (const end of [...this.#ends]) end();
  }
}

/** While the database is unreachable a page keeps what it has; what does not exist any more ends the stream. */
function explain(error: unknown): undefined {
  const refusal = refusalOf(error);
  if (refusal && refusal.code !== "busy") throw error;
  return undefined;
}
