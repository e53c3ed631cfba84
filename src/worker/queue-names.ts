import type { Database } from "../db/database.ts";
import { getQueueNames } from "../db/statements/get-queue-names.ts";
import type { PromiseOrDirect } from "../task.ts";
import { type Deferred, deferred } from "../util/deferred.ts";

/** Looks up the names of queues, many at a time, and remembers them. */
export class QueueNames {
  readonly #database: Database;
  readonly #delayMs: number;
  readonly #known = new Map<number, string>();
  #asked = new Map<number, Deferred<string>>();

  constructor(database: Database, delayMs: number) {
    this.#database = database;
    this.#delayMs = delayMs;
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
      for (const { id, queue_name } of rows) this.#known.set(id, queue_name);
      for (const [queueId, answer] of asked) {
        const name = this.#known.get(queueId);
        if (name !== undefined) answer.resolve(name);
        else answer.reject(new Error(`There is no queue with the id ${queueId}.`));
      }
    } catch (error) {
      for (const answer of asked.values()) answer.reject(error);
    }
  }
}
