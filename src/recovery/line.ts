import type { PoolClient } from "pg";
import { clientDatabase, type Database } from "../db/database.ts";
import { directBackend } from "../db/direct-client.ts";
import { announceLine, lockLine, unlockLine, withdrawLine } from "../db/statements/worker-lines.ts";

/**
 * The connection that a worker's signs of life go over. Where nothing stands between it and its server process, it holds a
 * lock that goes when the connection goes, so that a death is noticed at once.
 */
export class Line {
  readonly run: Database["run"];
  readonly #client: PoolClient;
  #backend: number | undefined;
  #held: string | undefined;
  #isLost = false;

  private constructor(client: PoolClient, schema: string, onLost: () => void) {
    this.#client = client;
    this.run = clientDatabase(client, { schema, preparedStatements: false }).run;
    const lose = (): void => {
      this.#isLost = true;
      onLost();
    };
    client.on("error", lose);
    client.on("end", lose);
  }

  static async open(connect: () => Promise<PoolClient>, schema: string, onLost: () => void): Promise<Line> {
    const client = await connect();
    const line = new Line(client, schema, onLost);
    try {
      line.#backend = await directBackend(client);
      return line;
    } catch (error) {
      line.close();
      throw error;
    }
  }

  get isLost(): boolean {
    return this.#isLost;
  }

  /** False through a pooler: a lock would stay behind with a server process that others go on using. */
  get canHold(): boolean {
    return this.#backend !== undefined;
  }

  /** Takes the lock of a worker, and lets go of the one that was held; others are not told yet. */
  async hold(workerId: string): Promise<void> {
    if (!this.canHold || this.#held === workerId) return;
    await this.run(lockLine, { id: workerId });
    if (this.#held !== undefined) await this.run(unlockLine, { id: this.#held });
    this.#held = workerId;
  }

  /** Tells others what the lock means. */
  async announce(): Promise<void> {
    if (this.#held !== undefined) await this.run(announceLine, { id: this.#held });
  }

  /** True if another server process answers than before: a pooler that hides well. From then on there is no lock. */
  async isBetrayedBy(pid: number): Promise<boolean> {
    if (this.#backend === undefined || this.#backend === pid) return false;
    this.#backend = undefined;
    const held = this.#held;
    this.#held = undefined;
    if (held !== undefined) await this.run(withdrawLine, { id: held });
    return true;
  }

  close(): void {
    this.#isLost = true;
    this.#client.release();
  }
}
