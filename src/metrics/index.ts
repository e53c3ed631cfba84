export { type MetricsHandler, metricsHandler } from "./handler.ts";
export type { Health } from "./health.ts";
export { type Metrics, type MetricsOptions, makeMetrics } from "./metrics.ts";
export { type MetricsServer, type ServeMetricsOptions, serveMetrics } from "./serve-metrics.ts";
