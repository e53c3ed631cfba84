import { type Deferred, deferred } from "./deferred.ts";

interface Waiting<Item, Result> extends Deferred<Result | PromiseLike<Result>> {
  readonly item: Item;
}

/**
 * Lets what is asked for at the same time share one write, without a timer: what gathers while one write is under way goes out
 * with the next, so batches grow only under load.
 */
export class Coalescer<Item, Result = void> {
  readonly #write: (items: readonly Item[]) => Promise<readonly (Result | PromiseLike<Result>)[]>;
  readonly #maxItems: number;
  #waiting: Waiting<Item, Result>[] = [];
  #isWriting = false;

  /** `write` gives one result for each item, in their order; a promise among them decides over its own caller only. */
  constructor(
    write: (items: readonly Item[]) => Promise<readonly (Result | PromiseLike<Result>)[]>,
    maxItems = Number.POSITIVE_INFINITY,
  ) {
    this.#write = write;
    this.#maxItems = maxItems;
  }

  /** Settles when, and as, the write that carried this item does. */
  add(item: Item): Promise<Result> {
    const waiting = { item, ...deferred<Result | PromiseLike<Result>>() };
    this.#waiting.push(waiting);
    if (!this.#isWriting) void this.#writeAll();
    return waiting.promise as Promise<Result>;
  }

  async #writeAll(): Promise<void> {
    this.#isWriting = true;
    // What is asked for in the same breath goes out together.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, this.#maxItems);
      try {
        const results = await this.#write(batch.map(({ item }) => item));
        for (const [index, waiting] of batch.entries()) waiting.resolve(results[index] as Result);
      } catch (error) {
        for (const waiting of batch) waiting.reject(error);
      }
    }
    this.#isWriting = false;
  }
}
