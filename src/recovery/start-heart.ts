import type { ClientConfig } from "pg";
import { connectDirectly } from "../db/direct-client.ts";
import { toError } from "../errors.ts";
import type { Logger } from "../logger.ts";
import { deferred } from "../util/deferred.ts";
import { sleep } from "../util/sleep.ts";
import { clearInterval, setInterval } from "../util/timers.ts";
import { beatPatienceMs, Heart, type HeartNews, type HeartOptions } from "./heart.ts";
import type { HeartOrder, HeartThreadData, ThreadNews } from "./heart-thread.ts";
import type { LoopBoard } from "./loop-board.ts";
import { lookIntervalMs } from "./loop-watch.ts";
import { spawnHeartThread } from "./spawn-heart-thread.ts";
import type { WorkerMetadata } from "./worker-metadata.ts";

export interface RunningHeart {
  describe(metadata: WorkerMetadata): void;
  /** Beats at once. */
  doubt(): void;
  /** The worker has taken its new id. */
  goOn(workerId: string): void;
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

/** Starts heartbeats on a thread of their own; where that is not possible, on this one. */
export function startHeart(options: StartHeartOptions): RunningHeart {
  const { settings, board, logger } = options;
  const turnMs = lookIntervalMs(settings) / 2;
  const turning = setInterval(() => board.turn(turnMs), turnMs);
  turning.unref();
  const patienceMs = beatPatienceMs(settings);
  const config = { ...options.config, connectionTimeoutMillis: patienceMs, query_timeout: patienceMs };

  let current = options;
  const onNews = (news: HeartNews): void => {
    if (news.kind === "renewed") current = { ...current, workerId: news.to };
    options.tell(news);
  };
  const goOnHere = (reason: string): void => {
    logger.warn(
      `Heartbeats run on the main thread: the heartbeat thread could not start (${reason}). A task that blocks the event loop for ` +
        "longer than 'sweepThreshold' will look like a dead worker.",
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
    doubt: () => heart?.doubt(),
    goOn: (workerId) => heart?.goOn(workerId),
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
    doubt: () => heart.doubt(),
    goOn: (workerId) => heart.goOn(workerId),
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

function beatInThread(options: StartHeartOptions, onFailure: (reason: string) => void): RunningHeart {
  const { workerId, schema, metadata, settings, config, board, tell } = options;
  const { heartbeatInterval, sweepThreshold, maxEventLoopBlock, crashGrace } = settings;
  const data: HeartThreadData = {
    options: {
      workerId,
      schema,
      metadata,
      settings: { heartbeatInterval, sweepThreshold, maxEventLoopBlock, crashGrace },
    },
    config,
    memory: board.memory,
  };
  const thread = spawnHeartThread(data);
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
    doubt: () => order("doubt"),
    goOn: (workerId) => order({ goOn: workerId }),
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
