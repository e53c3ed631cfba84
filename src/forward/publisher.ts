import { inspect } from "node:util";
import { errorLine } from "../error-text.ts";
import { ConfigError, toError } from "../errors.ts";
import { SnoozeError, UnrecoverableError } from "../job-errors.ts";
import type { Logger } from "../logger.ts";
import { backoffMs } from "../util/backoff.ts";
import { sleep } from "../util/sleep.ts";
import { clearTimeout, monotonicMs, setImmediate, setTimeout } from "../util/timers.ts";
import type { ForwardMessage } from "./message.ts";
import type { PublishOutcome, PublishResult, Target } from "./target.ts";

// A try costs little, and everything waits for it: a broker that comes and goes must not be missed.
const absentBackoff = { minMs: 100, maxMs: 1_000, factor: 1.5 };
/** A target that has not answered for this long is logged as unreachable. */
const silenceMs = 10_000;

interface Waiting {
  readonly message: ForwardMessage;
  /** Aborts if the job is cancelled or its worker stops; asked only when there is time to. */
  readonly signal: () => AbortSignal;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

export interface PublisherOptions {
  readonly target: Target;
  readonly maxBatch: number;
  readonly logger: Logger;
}

/**
 * Publishes what is waiting, one batch after the other: what gathers while one is under way goes out with the next. No message is sent again before
 * the answer about it has come, so that those of a queue keep their order. While the target is unreachable everything waits here.
 */
export class Publisher {
  readonly #options: PublisherOptions;
  readonly #closing = new AbortController();
  #waiting: Waiting[] = [];
  #inFlight: readonly Waiting[] = [];
  #isPublishing = false;
  #absentSince: number | undefined;

  constructor(options: PublisherOptions) {
    this.#options = options;
  }

  /** Resolves when the target has the message; rejects with what is to become of the job otherwise. */
  send(message: ForwardMessage, signal: () => AbortSignal): Promise<void> {
    if (this.#closing.signal.aborted) return Promise.reject(putBack());
    return new Promise((resolve, reject) => {
      this.#waiting.push({ message, signal, resolve, reject });
      if (!this.#isPublishing) void this.#publishAll();
    });
  }

  /** What the target does not have yet is put back. */
  close(): void {
    this.#closing.abort();
    for (const { reject } of this.#waiting.splice(0)) reject(putBack());
  }

  /** Puts back what the target has not answered as well. */
  abandon(): void {
    this.close();
    for (const { reject } of this.#inFlight) reject(putBack());
  }

  async #publishAll(): Promise<void> {
    this.#isPublishing = true;
    // What starts in the same turn of the event loop goes out together.
    await new Promise<void>((resolve) => setImmediate(resolve));
    for (let failures = 0; this.#waiting.length > 0; ) {
      const batch = this.#waiting.splice(0, this.#options.maxBatch);
      this.#inFlight = batch;
      const results = await this.#publish(batch);
      this.#inFlight = [];
      const absent = this.#settle(batch, results);
      failures = absent ? failures + 1 : 0;
      if (!absent) continue;
      this.#waiting = [...absent, ...this.#waiting];
      if (!this.#closing.signal.aborted) await sleep(backoffMs(absentBackoff, failures - 1), this.#closing.signal);
      this.#dropAborted();
    }
    this.#isPublishing = false;
  }

  async #publish(batch: readonly Waiting[]): Promise<readonly PublishResult[]> {
    const { target } = this.#options;
    const timer = setTimeout(() => this.#noteAbsent(`no answer for ${silenceMs / 1000} s`), silenceMs).unref();
    try {
      const given = await target.publish(batch.map(({ message }) => message));
      if (!Array.isArray(given) || given.length !== batch.length) {
        throw new ConfigError(`'publish' must return one outcome for each of ${batch.length} messages.`);
      }
      return given.map(readResult);
    } catch (error) {
      return batch.map(() => ({ outcome: "absent", reason: error }));
    } finally {
      clearTimeout(timer);
    }
  }

  /** Settles what is decided, and gives what is not; undefined if that is nothing. */
  #settle(batch: readonly Waiting[], results: readonly PublishResult[]): Waiting[] | undefined {
    const absent: Waiting[] = [];
    let reason: unknown;
    for (const [index, waiting] of batch.entries()) {
      const result = results[index]!;
      switch (result.outcome) {
        case "acked":
          waiting.resolve();
          break;
        case "retry":
          waiting.reject(new Error(this.#describe("did not take the message", result), { cause: result.reason }));
          break;
        case "reject":
          waiting.reject(
            new UnrecoverableError(this.#describe("can never take the message", result), { cause: result.reason }),
          );
          break;
        default:
          absent.push(waiting);
          reason = result.reason;
      }
    }
    if (absent.length === 0) {
      this.#noteWell();
      return undefined;
    }
    this.#noteAbsent(reason);
    return absent;
  }

  /** Lets go of what was cancelled while it waited, and of everything if the worker stops. */
  #dropAborted(): void {
    this.#waiting = this.#waiting.filter(({ signal, reject }) => {
      if (this.#closing.signal.aborted) reject(putBack());
      else if (signal().aborted) reject(isCancelled(signal().reason) ? signal().reason : putBack());
      else return true;
      return false;
    });
  }

  #noteAbsent(reason: unknown): void {
    if (this.#absentSince !== undefined) return;
    this.#absentSince = monotonicMs();
    const { target, logger } = this.#options;
    logger.error(`${target.name} cannot be reached (${toReason(reason)}); jobs wait and are sent when it answers.`, {
      error: reason,
    });
  }

  #noteWell(): void {
    if (this.#absentSince === undefined) return;
    const seconds = ((monotonicMs() - this.#absentSince) / 1000).toFixed(1);
    this.#absentSince = undefined;
    this.#options.logger.info(`${this.#options.target.name} answers again after ${seconds} s.`);
  }

  #describe(what: string, { reason }: PublishResult): string {
    return `${this.#options.target.name} ${what}${reason === undefined ? "" : `: ${toReason(reason)}`}`;
  }
}

const outcomes: readonly unknown[] = ["acked", "retry", "reject", "absent"] satisfies PublishOutcome[];

/** What is no outcome says nothing about its message, which is sent again. */
function readResult(given: PublishOutcome | PublishResult | null | undefined): PublishResult {
  const result = typeof given === "object" && given !== null ? given : { outcome: given };
  if (outcomes.includes(result.outcome)) return result as PublishResult;
  const reason = new ConfigError(
    `'publish' returned ${inspect(given, { depth: 0 })} for a message; it must be 'acked', 'retry', 'reject' or 'absent'`,
  );
  return { outcome: "absent", reason };
}

function toReason(reason: unknown): string {
  return typeof reason === "string" ? reason : errorLine(toError(reason));
}

function isCancelled(reason: unknown): boolean {
  return (reason as { code?: unknown } | undefined)?.code === "JOB_CANCELLED";
}

/** The job is due again at once, with its attempt restored. */
function putBack(): SnoozeError {
  return new SnoozeError(0, "The worker stopped before the message was sent");
}
