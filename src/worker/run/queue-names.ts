import type { Database } from "../../db/database.ts";
import { getQueueNames } from "../../db/statements/claim.ts";
import type { PromiseOrDirect } from "../../task.ts";
import { type Deferred, deferred } from "../../util/deferred.ts";
import { setTimeout } from "../../util/timers.ts";

/** How many names are remembered; with a queue per customer there may be any number. */
const maxKnown = 10_000;

/** Looks up the names of queues, many at a time, and remembers those asked for last. */
export class QueueNames {
  readonly #database: Database;
  readonly #delayMs: number;
  readonly #maxKnown: number;
  readonly #known = new Map<number, string>();
  #asked = new Map<number, Deferred<string>>();

  constructor(database: Database, delayMs: number, max = maxKnown) {
    this.#database = database;
    this.#delayMs = delayMs;
    this.#maxKnown = max;
  }

  /** How many names are remembered now. */
  get size(): number {
    return this.#known.size;
  }

  get(queueId: number): PromiseOrDirect<string> {
    const known = this.#known.get(queueId);
    if (known !== undefined) return known;
    let answer = this.#asked.get(queueId);
    if (!answer) {
      if (this.#asked.size === 0) setTimeout(() => void this.#lookUp(), this.#delayMs);
      answer = deferred<string>();
      this.#asked.set(queueId, answer);
    }
    return answer.promise;
  }

  async #lookUp(): Promise<void> {
    const asked = this.#asked;
    this.#asked = new Map();
    try {
      const rows = await this.#database.run(getQueueNames, { queueIds: [...asked.keys()] });
      const nameById = new Map(rows.map(({ id, queue_name }) => [id, queue_name]));
      for (const [queueId, answer] of asked) {
        const name = nameById.get(queueId);
        if (name === undefined) {
          answer.reject(new Error(`Queue with id '${queueId}' not found`));
          continue;
        }
        this.#remember(queueId, name);
        answer.resolve(name);
      }
    } catch (error) {
      for (const answer of asked.values()) answer.reject(error);
    }
  }

  #remember(queueId: number, name: string): void {
    this.#known.set(queueId, name);
    const [oldest] = this.#known.keys();
    if (this.#known.size > this.#maxKnown && oldest !== undefined) this.#known.delete(oldest);
  }
}
