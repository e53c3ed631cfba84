import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { onTestFinished } from "vitest";

/** A TCP proxy in front of a database, that can misbehave like a network. */
export interface Proxy {
  /** The database's URL, by way of the proxy. */
  readonly url: string;
  /** How many connections go through it now. */
  connections(): number;
  /** Resets every connection; new ones are let through. */
  cut(): void;
  /** Resets the next connection whose client sends this text: after the server has got it and answered, unheard. */
  cutAfter(text: string): Promise<void>;
  /** Lets nothing through in either direction, without a word to anybody; `restore` delivers what waited. */
  blackhole(): void;
  /** As above, but only for connections that are open now. */
  blackholeOpen(): void;
  /** Resets every connection, and each new one until `restore`. */
  sever(): void;
  restore(): void;
}

interface Line {
  readonly client: Socket;
  readonly server: Socket;
}

/** Starts a proxy that ends with the test. */
export async function startProxy(databaseUrl: string): Promise<Proxy> {
  const target = new URL(databaseUrl);
  const lines = new Set<Line>();
  let isSilent = false;
  let isSevered = false;
  let trap: { text: string; sprung: () => void } | undefined;

  const drop = (line: Line): void => {
    lines.delete(line);
    line.client.resetAndDestroy();
    line.server.destroy();
  };
  const silence = (line: Line): void => {
    line.client.pause();
    line.server.pause();
  };
  const listener = createServer((client) => {
    if (isSevered) {
      client.on("error", () => undefined);
      client.resetAndDestroy();
      return;
    }
    const server = connect(Number(target.port), target.hostname);
    const line: Line = { client, server };
    lines.add(line);
    client.setNoDelay(true);
    server.setNoDelay(true);
    let isDoomed = false;
    client.on("data", (data) => {
      if (trap && data.includes(trap.text)) {
        isDoomed = true;
        const { sprung } = trap;
        trap = undefined;
        server.once("data", () => {
          drop(line);
          sprung();
        });
      }
      server.write(data);
    });
    server.on("data", (data) => {
      if (!isDoomed) client.write(data);
    });
    for (const socket of [client, server]) {
      socket.on("error", () => undefined);
      socket.on("close", () => {
        lines.delete(line);
        client.destroy();
        server.destroy();
      });
    }
    if (isSilent) silence(line);
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  onTestFinished(() => {
    listener.close();
    for (const line of lines) drop(line);
  });

  const address = listener.address();
  if (address === null || typeof address === "string") throw new Error("The proxy has no port.");
  const url = new URL(databaseUrl);
  url.port = String(address.port);
  return {
    url: url.href,
    connections: () => lines.size,
    cut: () => lines.forEach(drop),
    cutAfter: (text) =>
      new Promise((resolve) => {
        trap = { text, sprung: resolve };
      }),
    blackhole: () => {
      isSilent = true;
      lines.forEach(silence);
    },
    blackholeOpen: () => lines.forEach(silence),
    sever: () => {
      isSevered = true;
      lines.forEach(drop);
    },
    restore: () => {
      isSilent = false;
      isSevered = false;
      for (const { client, server } of lines) {
        client.resume();
        server.resume();
      }
    },
  };
}
