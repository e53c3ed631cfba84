import { buildIndex } from "../db/build-index.ts";
import type { Database } from "../db/database.ts";
import { isTransient } from "../db/sqlstate.ts";
import { forSchema } from "../db/statement.ts";
import { limitIndexText, listLimitIndexes } from "../db/statements/limit-indexes.ts";
import { tidyLimits } from "../db/statements/limits.ts";
import { errorTitle } from "../error-text.ts";
import type { Logger } from "../logger.ts";
import type { Service } from "../util/service.ts";
import { clearInterval, setInterval } from "../util/timers.ts";

/** How often to ask which indexes are missing. */
const intervalMs = 10_000;
/** How many of these pass until what is no longer needed is deleted. */
const tidyEvery = 6;

export interface LimitMaintenanceOptions {
  readonly database: Database;
  readonly logger: Logger;
}

/** Builds the indexes that limits need, beside everything that goes on, and tidies up. Of several workers at once, one builds. */
export class LimitMaintenance implements Service {
  readonly #options: LimitMaintenanceOptions;
  #timer: NodeJS.Timeout | undefined;
  #busy: Promise<void> | undefined;
  #rounds = 0;
  readonly #stop = new AbortController();
  #hasWarned = false;

  constructor(options: LimitMaintenanceOptions) {
    this.#options = options;
  }

  /** Tasks have limits. */
  start(): void {
    if (this.#stop.signal.aborted) return;
    this.#timer ??= setInterval(() => this.#turn(), intervalMs).unref();
    this.#turn();
  }

  /** A build that is under way is cancelled; the next worker begins it again. */
  async stop(): Promise<void> {
    this.#stop.abort();
    clearInterval(this.#timer);
    await this.#busy;
  }

  #turn(): void {
    this.#busy ??= this.#maintain()
      .catch((error: unknown) => this.#warn(error))
      .finally(() => {
        this.#busy = undefined;
      });
  }

  async #maintain(): Promise<void> {
    const { database } = this.#options;
    const { signal } = this.#stop;
    await buildLimitIndexes({ ...this.#options, signal });
    if (this.#rounds++ % tidyEvery === 0 && !signal.aborted) await database.run(tidyLimits, {});
  }

  #warn(error: unknown): void {
    if (this.#stop.signal.aborted || this.#hasWarned || isTransient(error)) return;
    this.#hasWarned = true;
    this.#options.logger.warn(
      `The indexes that limits need could not be built; limits hold, but claims are slower: ${errorTitle(error)}`,
      { error },
    );
  }
}

/** Builds the indexes that limits need and that are not there yet. */
export async function buildLimitIndexes({
  database,
  logger,
  signal,
}: LimitMaintenanceOptions & { readonly signal?: AbortSignal }): Promise<void> {
  const { schema } = database;
  for (const row of await database.run(listLimitIndexes, {})) {
    if (row.is_valid || signal?.aborted) continue;
    const index = { name: row.name, table: "_private_jobs", text: forSchema(limitIndexText(row), schema) };
    await database.withPgClient((client) => buildIndex({ client, schema, index, logger, signal }));
  }
}
