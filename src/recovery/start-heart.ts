import { Worker } from "node:worker_threads";
import type { ClientConfig } from "pg";
import { connectDirectly } from "../db/direct-client.ts";
import { toError } from "../errors.ts";
import type { Logger } from "../logger.ts";
import { deferred } from "../util/deferred.ts";
import { sleep } from "../util/sleep.ts";
import { Heart, type HeartNews, type HeartOptions, lookIntervalMs } from "./heart.ts";
import type { HeartOrder, HeartThreadData, ThreadNews } from "./heart-thread.ts";
import type { LoopBoard } from "./loop-board.ts";
import type { WorkerMetadata } from "./recovery-settings.ts";

export interface RunningHeart {
  describe(metadata: WorkerMetadata): void;
  /** Resolves when no beat is under way and none will follow. */
  stop(): Promise<void>;
}

export interface StartHeartOptions extends HeartOptions {
  readonly config: ClientConfig;
  readonly board: LoopBoard;
  readonly logger: Logger;
  readonly tell: (news: HeartNews) => void;
}

const stopMs = 2_000;

/** Starts to beat from a thread of its own; where that is not possible, from this one. */
export function startHeart(options: StartHeartOptions): RunningHeart {
  const { settings, board, logger } = options;
  const turning = setInterval(() => board.turn(), lookIntervalMs(settings) / 2);
  turning.unref();
  // A beat must not wait for ever on a connection that is dead without a word.
  const patienceMs = Math.max(1_000, Math.min(10_000, settings.heartbeatInterval));
  const config = { ...options.config, connectionTimeoutMillis: patienceMs, query_timeout: patienceMs };

  let current = options;
  const onNews = (news: HeartNews): void => {
    if (news.kind === "renewed") current = { ...current, workerId: news.to };
    options.tell(news);
  };
  const goOnHere = (reason: string): void => {
    logger.warn(
      `Signs of life are given from the main thread, since a thread of their own could not be had (${reason}): a task that ` +
        "blocks the event loop for longer than 'sweepThreshold' will be taken for a dead worker.",
    );
    heart = beatHere({ ...current, config, tell: onNews });
  };
  let heart: RunningHeart | undefined;
  try {
    heart = beatInThread({ ...options, config, tell: onNews }, goOnHere);
  } catch (error) {
    // A password or a stream that is a function cannot go into another thread.
    goOnHere(toError(error).message);
  }
  return {
    describe(metadata) {
      current = { ...current, metadata };
      heart?.describe(metadata);
    },
    async stop() {
      clearInterval(turning);
      await heart?.stop();
    },
  };
}

function beatHere(options: StartHeartOptions): RunningHeart {
  const stopping = new AbortController();
  const heart = new Heart(options, { ...options, connect: () => connectDirectly(options.config) });
  const running = heart.run(stopping.signal);
  return {
    describe: (metadata) => heart.describe(metadata),
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

function beatInThread(options: StartHeartOptions, onFailure: (reason: string) => void): RunningHeart {
  const { workerId, schema, metadata, settings, config, board, tell } = options;
  const { heartbeatInterval, maxEventLoopBlock, crashGrace } = settings;
  const data: HeartThreadData = {
    options: { workerId, schema, metadata, settings: { heartbeatInterval, maxEventLoopBlock, crashGrace } },
    config,
    memory: board.memory,
  };
  // The thread is the same kind of file as this one: compiled, or source that needs a loader.
  const isSource = import.meta.url.endsWith(".ts");
  const thread = new Worker(new URL(`./heart-thread.${isSource ? "ts" : "js"}`, import.meta.url), {
    workerData: data,
    execArgv: isSource ? ["--import", "jiti/register"] : [],
  });
  thread.unref();
  let isUp = false;
  let isStopping = false;
  let failure: Error | undefined;
  const still = deferred();
  thread.on("message", (news: ThreadNews) => {
    if (news.kind === "up") isUp = true;
    else if (news.kind === "still") still.resolve();
    else tell(news);
  });
  thread.on("error", (error) => {
    failure = toError(error);
  });
  thread.on("exit", (code) => {
    still.resolve();
    if (!isStopping) onFailure(failure?.message ?? `it ended with ${code}`);
  });
  const order = (what: HeartOrder): void => thread.postMessage(what);
  return {
    describe: order,
    async stop() {
      isStopping = true;
      // One that is only just being made has not reached the database yet.
      if (!isUp) return void thread.terminate();
      thread.ref();
      order("stop");
      const tooLate = new AbortController();
      await Promise.race([still.promise, sleep(stopMs, tooLate.signal).then(() => thread.terminate())]);
      tooLate.abort();
      thread.unref();
    },
  };
}
