import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { onTestFinished } from "vitest";
import { until } from "../support/wait.ts";

/** A broker in a process of its own, with its data in a folder of its own. */
export interface Server {
  readonly port: number;
  /** SIGKILL, until it is gone. */
  kill(): Promise<void>;
  /** SIGSTOP: it takes connections and messages, and answers nothing. */
  freeze(): void;
  /** Starts it again, on the same port and data. */
  start(): Promise<void>;
}

/** Where to leave what ends a server. */
export type AtEnd = (end: () => Promise<void>) => void;

interface Recipe {
  readonly command: string;
  readonly args: (port: number, folder: string) => string[];
  readonly env?: (port: number, folder: string) => Record<string, string>;
  readonly withinMs?: number;
  /** What to send until it answers with what; that it takes connections, if left out. */
  readonly greeting?: { readonly send: string; readonly expect: string };
  /** The end of the test, if left out. */
  readonly atEnd: AtEnd | undefined;
}

export const startNats = (atEnd?: AtEnd): Promise<Server> =>
  startServer({
    atEnd,
    command: "nats-server",
    args: (port, folder) => ["-a", "127.0.0.1", "-p", String(port), "-js", "-sd", folder],
  });

export const startRedis = (atEnd?: AtEnd): Promise<Server> =>
  startServer({
    atEnd,
    command: "redis-server",
    // It takes connections while it still reads its data.
    greeting: { send: "PING\r\n", expect: "+PONG" },
    args: (port, folder) => [
      ...["--bind", "127.0.0.1", "--port", String(port), "--dir", folder, "--save", ""],
      ...["--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction"],
    ],
  });

export async function startRabbit(atEnd?: AtEnd): Promise<Server> {
  const [epmd, distribution] = [await freePort(), await freePort()];
  return startServer({
    atEnd,
    command: "/usr/lib/rabbitmq/bin/rabbitmq-server",
    args: () => [],
    withinMs: 90_000,
    env: (port, folder) => ({
      HOME: folder,
      ERL_EPMD_PORT: String(epmd),
      ERL_EPMD_ADDRESS: "127.0.0.1",
      // It would outlive the test otherwise.
      RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: `-start_epmd false -erl_epmd_port ${distribution} -kernel inet_dist_use_interface {127,0,0,1}`,
      RABBITMQ_DIST_PORT: String(distribution),
      RABBITMQ_NODENAME: `hathi${port}@localhost`,
      RABBITMQ_NODE_IP_ADDRESS: "127.0.0.1",
      RABBITMQ_NODE_PORT: String(port),
      RABBITMQ_MNESIA_BASE: folder,
      RABBITMQ_LOG_BASE: folder,
      RABBITMQ_CONFIG_FILE: join(folder, "none"),
      RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, "no-plugins"),
    }),
  });
}

async function startServer(recipe: Recipe): Promise<Server> {
  const { command, args, env, withinMs = 20_000, greeting, atEnd = onTestFinished } = recipe;
  const folder = mkdtempSync(join(tmpdir(), "hathi-broker-"));
  const port = await freePort();
  let child: ChildProcess | undefined;
  let output = "";
  const kill = async (): Promise<void> => {
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    // RabbitMQ's script starts the server as a child.
    process.kill(-child.pid!, "SIGKILL");
    await gone;
  };
  const launch = (): void => {
    child = spawn(command, args(port, folder), {
      env: { ...process.env, ...env?.(port, folder) },
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    for (const stream of [child.stdout!, child.stderr!]) stream.on("data", (data) => (output += data));
  };
  const isUp = async (): Promise<boolean> => {
    // What was killed a moment ago may still have had its ports.
    if (child && (child.exitCode !== null || child.signalCode !== null)) launch();
    return answers(port, greeting);
  };
  const start = async (): Promise<void> => {
    launch();
    await until(isUp, { withinMs, what: `${command} listens` }).catch((error: Error) => {
      throw new Error(`${error.message}; it said\n${output.slice(-2_000)}`);
    });
  };
  atEnd(async () => {
    await kill();
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  });
  await start();
  return { port, kill, start, freeze: () => void process.kill(-child!.pid!, "SIGSTOP") };
}

/** librdkafka's mock broker. It keeps nothing, so it cannot be started again. */
export async function startKafka(topic: string, atEnd: AtEnd = onTestFinished): Promise<Server> {
  const child = spawn("kcat", ["-C", "-q", "-X", "test.mock.num.brokers=1", "-b", "mock", "-t", topic, "-d", "mock"]);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (output += data));
  const kill = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
  };
  atEnd(kill);
  const port = await until(() => /127\.0\.0\.1:(\d+)/.exec(output)?.[1], { what: `kcat tells its port: ${output}` });
  return {
    port: Number(port),
    kill,
    freeze: () => void child.kill("SIGSTOP"),
    start: () => Promise.reject(new Error("It keeps nothing.")),
  };
}

/** True if the program is installed; not asked itself, since RabbitMQ's takes any argument as an order to start. */
export function isInstalled(program: string): boolean {
  const folders = [...(process.env.PATH ?? "").split(delimiter), "/usr/sbin"];
  return folders.some((folder) => existsSync(join(folder, program)));
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}

function answers(port: number, greeting: Recipe["greeting"]): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    const end = (isThere: boolean): void => {
      socket.destroy();
      resolve(isThere);
    };
    socket.once("connect", () => (greeting ? socket.write(greeting.send) : end(true)));
    socket.once("data", (data) => end(greeting !== undefined && data.toString().startsWith(greeting.expect)));
    socket.once("close", () => resolve(false));
    socket.once("error", () => resolve(false));
  });
}
