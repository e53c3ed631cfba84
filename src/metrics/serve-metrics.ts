import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { ConfigError } from "../errors.ts";
import { metricsHandler } from "./handler.ts";
import type { Metrics } from "./metrics.ts";

export interface ServeMetricsOptions {
  /** 0 for any that is free. */
  readonly port: number;
  /** Whom it listens to; this machine alone, if left out. */
  readonly host?: string | undefined;
}

export interface MetricsServer {
  readonly url: string;
  close(): Promise<void>;
}

/** Serves `/metrics`, `/livez` and `/readyz`. The server does not keep the process alive. */
export async function serveMetrics(
  metrics: Metrics,
  { port, host = "127.0.0.1" }: ServeMetricsOptions,
): Promise<MetricsServer> {
  const handler = metricsHandler(metrics);
  const server = createServer((request, response) => void handler.node(request, response));
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) => reject(new ConfigError(`Metrics cannot be served: ${error.message}`)));
    server.listen({ port, host }, resolve);
  });
  server.unref();
  const { address, family, port: chosen } = server.address() as AddressInfo;
  return {
    url: `http://${family === "IPv6" ? `[${address}]` : address}:${chosen}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
