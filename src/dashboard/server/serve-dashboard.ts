import { randomBytes } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { userInfo } from "node:os";
import { ConfigError } from "../../index.ts";
import { createDashboard } from "./create-dashboard.ts";
import type { DashboardOptions } from "./options.ts";

export interface ServeDashboardOptions extends Omit<DashboardOptions, "auth" | "basePath"> {
  /** 0 for any that is free; 4000, if left out. */
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
  const { port = 4000, host = "127.0.0.1", auth, ...rest } = options;
  if (auth === undefined && !isLoopback(host)) {
    throw new ConfigError(
      `A dashboard that listens to other machines ('${host}') needs 'auth', such as { bearer: token } or { basic: { username, password } }.`,
    );
  }
  const token = auth === undefined ? randomBytes(24).toString("base64url") : undefined;
  const dashboard = createDashboard({ ...rest, auth: auth ?? { bearer: { token: token!, name: whoami() } } });
  const server = createServer((request, response) => void dashboard.node(request, response));
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) => reject(new ConfigError(`The dashboard cannot be served: ${error.message}`)));
    server.listen({ port, host }, resolve);
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
