import type { Database } from "../../db/database.ts";
import { announcePlaces } from "../../db/statements/limits.ts";
import { clearTimeout, setTimeout } from "../../util/timers.ts";

/** Long enough for us to take a freed place ourselves, which is what happens most of the time. */
const restMs = 10;

/** Tells other pools of places in limits that our jobs have freed and that we did not take again. */
export class PlaceWatch {
  readonly #database: Database;
  readonly #useNodeTime: boolean;
  readonly #taskIds = new Set<number>();
  #places = 0;
  #timer: NodeJS.Timeout | undefined;
  #telling: Promise<void> = Promise.resolve();

  constructor(database: Database, useNodeTime: boolean) {
    this.#database = database;
    this.#useNodeTime = useNodeTime;
  }

  freed(taskId: number): void {
    this.#taskIds.add(taskId);
    this.#places++;
    this.#timer ??= setTimeout(() => this.#tell(), restMs);
  }

  claimed(jobs: number): void {
    this.#places = Math.max(0, this.#places - jobs);
  }

  /** Tells of what is left, at once. */
  async stop(): Promise<void> {
    this.#tell();
    await this.#telling;
  }

  #tell(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const taskIds = [...this.#taskIds];
    this.#taskIds.clear();
    if (this.#places === 0) return;
    this.#places = 0;
    const told = this.#database.run(announcePlaces, { taskIds, clock: this.#useNodeTime ? new Date() : null }).then(
      () => undefined,
      () => undefined, // polling finds them
    );
    this.#telling = Promise.all([this.#telling, told]).then(() => undefined);
  }
}
