import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { onTestFinished } from "vitest";
import { makeSpout, type Weather } from "./weather.ts";

/** How the server answers a transaction that it has committed, whatever text asked for it. */
export const commitAnswer = "C\0\0\0\x0bCOMMIT\0";

/** A TCP proxy in front of a database, that can misbehave like a network. */
export interface Proxy {
  /** The database's URL, by way of the proxy. */
  readonly url: string;
  /** How many connections go through it now. */
  connections(): number;
  /** The ports by which the server knows them. */
  ports(): number[];
  /** Resets every connection; new ones are let through. */
  cut(): void;
  /** Resets the next connection whose client sends this text: after the server has got it and answered, unheard. */
  cutAfter(text: string | RegExp): Promise<void>;
  /** Takes that back, if it has not happened. */
  disarm(): void;
  /** Resets the next connection on which the server sends this text; the client gets none of it. */
  cutInsteadOf(text: string): Promise<void>;
  /** Lets nothing through in either direction, without a word to anybody; `restore` delivers what waited. */
  blackhole(): void;
  /** As above, but only for connections that are open now. */
  blackholeOpen(): void;
  /** Resets every connection, and each new one until `restore`. */
  sever(): void;
  restore(): void;
  /** Lets at most this many bytes through to a client in a second; what the server sends meanwhile waits. */
  throttle(bytesPerSecond: number): void;
  /** Delays everything in both directions by this much; what is under way keeps its order. */
  lag(ms: number): void;
  /** Lets through this many bytes at a time to a client, one portion every millisecond. */
  drip(bytes: number): void;
  /** Sends new connections to another server; those that are open stay where they are. */
  redirect(databaseUrl: string): void;
  /** Tells clients that connect from now on this process id instead of their backend's, as a pooler tells them made-up ones. */
  tellPid(pid: number): void;
  /** The process ids in the cancel requests that came so far. */
  readonly cancelledPids: number[];
}

interface Line {
  readonly client: Socket;
  readonly server: Socket;
}

/** Starts a proxy that ends with the test. */
export async function startProxy(databaseUrl: string): Promise<Proxy> {
  let target = new URL(databaseUrl);
  const lines = new Set<Line>();
  let isSilent = false;
  let isSevered = false;
  let bytesPerMs = Infinity;
  const weather: Weather = { lagMs: 0, dripBytes: Infinity };
  let toldPid: number | undefined;
  const cancelledPids: number[] = [];
  let trap: { text: string | RegExp; sprung: () => void } | undefined;
  let answerTrap: { text: string; sprung: () => void } | undefined;

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
    const toServer = makeSpout(server, weather);
    const toClient = makeSpout(client, weather);
    let isDoomed = false;
    client.on("data", (data) => {
      if (data.length === 16 && data.readInt32BE(4) === 80_877_102) cancelledPids.push(data.readInt32BE(8));
      if (trap && has(data, trap.text)) {
        isDoomed = true;
        const { sprung } = trap;
        trap = undefined;
        server.once("data", () => {
          drop(line);
          sprung();
        });
      }
      toServer(data);
    });
    server.on("data", (data) => {
      if (toldPid !== undefined) replacePid(data, toldPid);
      if (isDoomed) return;
      if (answerTrap && data.includes(answerTrap.text, 0, "latin1")) {
        const { sprung } = answerTrap;
        answerTrap = undefined;
        drop(line);
        sprung();
        return;
      }
      toClient(data);
      if (bytesPerMs === Infinity) return;
      server.pause();
      setTimeout(() => {
        if (!isSilent) server.resume();
      }, data.length / bytesPerMs);
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
    ports: () => [...lines].flatMap(({ server }) => server.localPort ?? []),
    cut: () => lines.forEach(drop),
    cutAfter: (text) =>
      new Promise((resolve) => {
        trap = { text, sprung: resolve };
      }),
    disarm: () => {
      trap = undefined;
    },
    cutInsteadOf: (text) =>
      new Promise((resolve) => {
        answerTrap = { text, sprung: resolve };
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
    throttle: (bytesPerSecond) => {
      bytesPerMs = bytesPerSecond / 1000;
    },
    lag: (ms) => {
      weather.lagMs = ms;
    },
    drip: (bytes) => {
      weather.dripBytes = bytes;
    },
    redirect: (url) => {
      target = new URL(url);
    },
    tellPid: (pid) => {
      toldPid = pid;
    },
    cancelledPids,
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

function has(data: Buffer, text: string | RegExp): boolean {
  return typeof text === "string" ? data.includes(text) : text.test(data.toString("latin1"));
}

/** The message with the key of a backend: its type, its length of 12, the process id and the secret. */
function replacePid(data: Buffer, pid: number): void {
  const at = data.indexOf(Buffer.from("K\0\0\0\x0c", "latin1"));
  if (at >= 0) data.writeInt32BE(pid, at + 5);
}
