import type { Duplex } from "node:stream";
import pg from "pg";
import { clearTimeout, setTimeout } from "../util/timers.ts";

/** A stop waits this long for a connection that was being opened when the network failed. */
const connectMs = 10_000;
const goodbyeMs = 5_000;

/**
 * Bounds the wait for a host that never answers, both when it connects and when it says goodbye: a socket whose peer is gone
 * would keep the process alive for a quarter of an hour. The pool's own option for connecting would also limit how long a job may
 * wait for a free connection, and pg's timer would follow the clock of a test that fakes timers.
 */
export class PatientClient extends pg.Client {
  override connect(): Promise<pg.Client>;
  override connect(callback: ((error: Error) => void) | ((error: null, client: pg.Client) => void)): void;
  override connect(
    callback?: ((error: Error) => void) | ((error: null, client: pg.Client) => void),
  ): Promise<pg.Client> | void {
    this.#destroyAfter(connectMs, ["connect", "end"]);
    return callback ? super.connect(callback) : super.connect();
  }

  override end(): Promise<void>;
  override end(callback: (error: Error) => void): void;
  override end(callback?: (error: Error) => void): Promise<void> | void {
    this.#destroyAfter(goodbyeMs, ["end"]);
    return callback ? super.end(callback) : super.end();
  }

  #destroyAfter(ms: number, unless: readonly ("connect" | "end")[]): void {
    const { connection } = this as unknown as { connection: { readonly stream: Duplex } };
    // The socket itself keeps the process alive until then.
    const timer = setTimeout(() => connection.stream.destroy(new Error("timeout expired")), ms).unref();
    for (const event of unless) this.once(event, () => clearTimeout(timer));
  }
}
