import { connect } from "node:net";
import type { PoolClient } from "pg";

/** What pg knows of a connection. */
interface Connected {
  readonly host?: string;
  readonly port?: number;
  readonly processID?: number | null;
  readonly secretKey?: number | null;
}

const cancelRequestCode = 80_877_102;

/**
 * Asks the server to stop what it does for a client, in the protocol's own way: with the secret that the client was given. By
 * its process id alone (`pg_cancel_backend`) the wrong backend could be hit, since a pooler makes up the ids that it gives its
 * clients, and the system gives an id out again. Resolves when the server has taken it, or after `withinMs`; never rejects.
 */
export function requestCancel(client: PoolClient, withinMs: number): Promise<void> {
  const { host, port, processID, secretKey } = client as unknown as Connected;
  if (!host || !port || !processID || typeof secretKey !== "number") return Promise.resolve();
  const request = Buffer.alloc(16);
  request.writeInt32BE(16, 0);
  request.writeInt32BE(cancelRequestCode, 4);
  request.writeInt32BE(processID, 8);
  request.writeInt32BE(secretKey, 12);
  return new Promise((resolve) => {
    const socket = host.startsWith("/") ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host);
    socket.setTimeout(withinMs, () => socket.destroy());
    socket.on("error", () => undefined); // it was worth a try
    socket.on("close", () => resolve());
    socket.on("connect", () => socket.write(request));
    socket.resume();
  });
}
