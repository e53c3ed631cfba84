import { buildIndex } from "../db/build-index.ts";
import type { Database } from "../db/database.ts";
import { isAway, isRepeatable } from "../db/sqlstate.ts";
import { forSchema } from "../db/statement.ts";
import { type LimitIndexRow, limitIndexText, listLimitIndexes, tidyLimits } from "../db/statements/limits.ts";
import { errorTitle } from "../error-text.ts";
import type { Logger } from "../logger.ts";
import { clearInterval, setInterval } from "../util/timers.ts";

/** How often to ask which indexes are missing. */
const intervalMs = 10_000;
/** How many of these pass until what is no longer needed is deleted. */
const tidyEvery = 6;

export interface LimitTenderOptions {
  readonly database: Database;
  readonly logger: Logger;
}

/** Builds the indexes that limits need, beside everything that goes on, and tidies up. Of several workers at once, one builds. */
export class LimitTender {
  readonly #options: LimitTenderOptions;
  #timer: NodeJS.Timeout | undefined;
  #busy: Promise<void> | undefined;
  #rounds = 0;
  #builder: number | undefined;
  #isStopped = false;
  #hasWarned = false;

  constructor(options: LimitTenderOptions) {
    this.#options = options;
  }

  /** Tasks have limits. */
  start(): void {
    if (this.#isStopped) return;
    this.#timer ??= setInterval(() => this.#turn(), intervalMs).unref();
    this.#turn();
  }

  /** A build that is under way is cancelled; the next worker begins it again. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearInterval(this.#timer);
    const builder = this.#builder;
    if (builder !== undefined) {
      const cancel = this.#options.database.withPgClient((client) =>
        client.query("select pg_catalog.pg_cancel_backend($1)", [builder]),
      );
      await cancel.catch(() => undefined);
    }
    await this.#busy;
  }

  #turn(): void {
    this.#busy ??= this.#tend()
      .catch((error: unknown) => this.#warn(error))
      .finally(() => {
        this.#busy = undefined;
      });
  }

  async #tend(): Promise<void> {
    const { database } = this.#options;
    const indexes = await database.run(listLimitIndexes, {});
    for (const index of indexes) if (!index.is_valid && !this.#isStopped) await this.#build(index);
    if (this.#rounds++ % tidyEvery === 0 && !this.#isStopped) await database.run(tidyLimits, {});
  }

  #build(index: LimitIndexRow): Promise<void> {
    const { database, logger } = this.#options;
    const text = forSchema(limitIndexText(index), database.schema);
    return database.withPgClient(async (client) => {
      const { rows } = await client.query<{ pid: number }>("select pg_catalog.pg_backend_pid() as pid");
      this.#builder = rows[0]!.pid;
      try {
        await buildIndex({
          client,
          schema: database.schema,
          index: { name: index.name, table: "_private_jobs", text },
          logger,
        });
      } finally {
        this.#builder = undefined;
      }
    });
  }

  #warn(error: unknown): void {
    if (this.#isStopped || this.#hasWarned || isAway(error) || isRepeatable(error)) return;
    this.#hasWarned = true;
    this.#options.logger.warn(
      `The indexes that limits need could not be built; limits hold, but claims are slower: ${errorTitle(error)}`,
      { error },
    );
  }
}
