import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

/** A way to a database that can be cut off, as by a broken network: nothing passes, and neither side hears of it. */
export interface Relay {
  /** The database's URL by way of the relay. */
  readonly url: string;
  cutOff(): void;
  /** Delivers what waited. */
  reconnect(): void;
  close(): void;
}

/** Opens a port of this machine that leads to a database. */
export async function openRelay(databaseUrl: string): Promise<Relay> {
  const target = new URL(databaseUrl);
  const sockets = new Set<Socket>();
  let isCutOff = false;
  const listener = createServer((client) => {
    const server = connect(Number(target.port || 5432), target.hostname.replace(/^\[|\]$/g, "") || "localhost");
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      sockets.add(socket.setNoDelay(true));
      socket.on("data", (data) => void other.write(data));
      socket.on("error", () => undefined);
      socket.on("close", () => {
        sockets.delete(socket);
        other.destroy();
      });
      if (isCutOff) socket.pause();
    }
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const url = new URL(databaseUrl);
  url.hostname = "127.0.0.1";
  url.port = String((listener.address() as { port: number }).port);
  return {
    url: url.href,
    cutOff: () => {
      isCutOff = true;
      for (const socket of sockets) socket.pause();
    },
    reconnect: () => {
      isCutOff = false;
      for (const socket of sockets) socket.resume();
    },
    close: () => {
      listener.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
