import { parentPort, workerData } from "node:worker_threads";
import type { ClientConfig } from "pg";
import { connectDirectly } from "../db/direct-client.ts";
import { Heart, type HeartNews, type HeartOptions } from "./heart.ts";
import { LoopBoard } from "./loop-board.ts";
import type { WorkerMetadata } from "./recovery-settings.ts";

/** What the thread is started with. */
export interface HeartThreadData {
  readonly options: HeartOptions;
  readonly config: ClientConfig;
  readonly memory: SharedArrayBuffer;
}

/** What it says: that it is there, what the heart has to tell, and that no beat will follow. */
export type ThreadNews = HeartNews | { readonly kind: "up" } | { readonly kind: "still" };

/** What it is told later: to stop, or that the worker has changed. */
export type HeartOrder = "stop" | WorkerMetadata;

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
    else heart.describe(order);
  });
  const say = (news: ThreadNews): void => port.postMessage(news);
  say({ kind: "up" });
  await heart.run(stopping.signal);
  say({ kind: "still" });
  port.close();
}
