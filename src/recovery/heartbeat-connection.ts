import { randomBytes } from "node:crypto";
import type { PoolClient } from "pg";
import { clientDatabase, type Database } from "../db/database.ts";
import { directBackend } from "../db/direct-client.ts";
import { endSession, openLine, type SessionRow, withdrawLine } from "../db/statements/heartbeat.ts";

export interface HeartbeatConnectionOptions {
  readonly connect: () => Promise<PoolClient>;
  readonly schema: string;
  readonly onLost: () => void;
  /** How long a statement may take on the server. */
  readonly statementMs: number;
  /** After how long without a word from us the server may end the session. */
  readonly silenceMs: number;
  /** The session of the connection before this one. The server may take it for alive, and then only we know better. */
  readonly former: SessionRow | undefined;
}

/**
 * The connection for a worker's heartbeats. Where nothing stands between it and its server process, it holds a lock that goes when the
 * connection goes, so that a death is noticed at once. The key of the lock is new for each connection: nothing waits for it.
 */
export class HeartbeatConnection {
  readonly run: Database["run"];
  readonly #client: PoolClient;
  #session: SessionRow | undefined;
  #key: string | null = null;
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

  static async open({
    connect,
    schema,
    onLost,
    former,
    ...limits
  }: HeartbeatConnectionOptions): Promise<HeartbeatConnection> {
    const client = await connect();
    const connection = new HeartbeatConnection(client, schema, onLost);
    try {
      // Through a pooler a lock, and our settings, would stay behind with a server process that others go on using.
      if ((await directBackend(client)) !== undefined) await connection.#hold(limits);
      if (former) await connection.run(endSession, former).catch(() => undefined); // the server ends it by itself later
      return connection;
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  get isLost(): boolean {
    return this.#isLost;
  }

  /** The key of the lock that this connection holds; null through a pooler. */
  get key(): string | null {
    return this.#key;
  }

  get session(): SessionRow | undefined {
    return this.#session;
  }

  async #hold(limits: { readonly statementMs: number; readonly silenceMs: number }): Promise<void> {
    const key = randomBytes(8).readBigInt64BE().toString();
    const [session] = await this.run(openLine, { key, ...limits });
    this.#session = session;
    this.#key = key;
  }

  /** If another server process answers than before, there is a pooler that hides well, and from now on no lock. */
  async checkServer(pid: number, workerId: string): Promise<void> {
    if (this.#session === undefined || this.#session.pid === pid) return;
    this.#session = undefined;
    this.#key = null;
    await this.run(withdrawLine, { id: workerId });
  }

  close(): void {
    this.#isLost = true;
    this.#client.release();
  }
}
