import { randomBytes } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { userInfo } from "node:os";
import { ConfigError } from "../../index.ts";
import { createDashboard, type Dashboard } from "./create-dashboard.ts";
import type { DashboardOptions } from "./options.ts";

export interface ServeDashboardOptions extends Omit<DashboardOptions, "auth" | "basePath"> {
  /** 0 for any that is free. If left out: 4000 or, where that is taken, any that is free. */
  readonly port?: number | undefined;
  /** Whom it listens to; this machine alone, if left out. */
  readonly host?: string | undefined;
  /** May be left out on this machine alone: then a token is made, and `url` contains it. */
  readonly auth?: DashboardOptions["auth"] | undefined;
}

export interface DashboardServer {
  /** Where it is; with a token, if one was made. */
  readonly url: string;
  close(): Promise<void>;
}

/** Serves a dashboard on a port of its own. The server does not keep the process alive. */
export async function serveDashboard(options: ServeDashboardOptions): Promise<DashboardServer> {
  const { port, host = "127.0.0.1", auth, ...rest } = options;
  if (auth === undefined && !isLoopback(host)) {
    throw new ConfigError(
      `A dashboard that listens to other machines ('${host}') needs 'auth', such as { bearer: token } or { basic: { username, password } }.`,
    );
  }
  const token = auth === undefined ? randomBytes(24).toString("base64url") : undefined;
  const dashboard = createDashboard({ ...rest, auth: auth ?? { bearer: { token: token!, name: whoami() } } });
  try {
    await dashboard.open();
    return await serve(dashboard, { port, host, token });
  } catch (error) {
    await dashboard.close();
    throw error;
  }
}

interface Listening {
  readonly port: number | undefined;
  readonly host: string;
  readonly token: string | undefined;
}

async function serve(dashboard: Dashboard, { port, host, token }: Listening): Promise<DashboardServer> {
  const server = createServer((request, response) => void dashboard.node(request, response));
  await listen(server, port ?? 4000, host).catch((error: Error & { code?: string }) => {
    if (port === undefined && error.code === "EADDRINUSE") return listen(server, 0, host);
    throw new ConfigError(`The dashboard cannot be served: ${error.message}`);
  });
  server.unref();
  const { address, family, port: chosen } = server.address() as AddressInfo;
  const origin = `http://${family === "IPv6" ? `[${address}]` : address}:${chosen}/`;
  return {
    url: token === undefined ? origin : `${origin}?token=${token}`,
    async close() {
      const closed = new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
      await dashboard.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ port, host }, () => {
      server.off("error", reject);
      resolve();
    });
  });
}

/** Who has started it has the token. */
function whoami(): string {
  try {
    return userInfo().username;
  } catch {
    return "local";
  }
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}
