import { parentPort, workerData } from "node:worker_threads";
import type { ClientConfig } from "pg";
import { connectDirectly } from "../db/direct-client.ts";
import { Heart, type HeartNews, type HeartOptions } from "./heart.ts";
import { LoopBoard } from "./loop-board.ts";
import type { WorkerMetadata } from "./worker-metadata.ts";

/** What the thread is started with. */
export interface HeartThreadData {
  readonly options: HeartOptions;
  readonly config: ClientConfig;
  readonly memory: SharedArrayBuffer;
}

/** What it says: that it is there, what the heart has to tell, and that no beat will follow. */
export type ThreadNews = HeartNews | { readonly kind: "up" } | { readonly kind: "still" };

/** Its later messages: stop, beat now, the worker has changed, or continue under another id. */
export type HeartOrder = "stop" | "doubt" | WorkerMetadata | { readonly goOn: string };

// This file is the thread: it is never imported, only started.
if (parentPort) {
  const port = parentPort;
  const { options, config, memory } = workerData as HeartThreadData;
  const stopping = new AbortController();
  const heart = new Heart(options, {
    connect: () => connectDirectly(config),
    board: new LoopBoard(memory),
    tell: (news) => port.postMessage(news),
  });
  port.on("message", (order: HeartOrder) => {
    if (order === "stop") stopping.abort();
    else if (order === "doubt") heart.doubt();
    else if ("goOn" in order) heart.goOn(order.goOn);
    else heart.describe(order);
  });
  const say = (news: ThreadNews): void => port.postMessage(news);
  say({ kind: "up" });
  // Not awaited: the build makes a script of this file, which has no top-level await. A failure ends the thread with its error.
  void heart.run(stopping.signal).then(() => {
    say({ kind: "still" });
    port.close();
  });
}
