import { graphileAdapter } from "./graphile-api.mjs";
import { serve } from "./serve.mjs";

// The copy of dist that this run measures.
const entry = process.env.HATHI_BENCH_ENTRY;
const adapter = graphileAdapter(await import(entry));

serve({
  ...adapter,
  startWorker: async ({ settings, ...request }) =>
    adapter.startWorker({ ...request, settings: await complete(settings) }),
});

/** Settings come as JSON, in which metrics cannot be. */
async function complete({ metrics, ...settings }) {
  if (!metrics) return settings;
  const { makeMetrics } = await import(new URL("metrics/index.js", entry));
  return { ...settings, metrics: makeMetrics() };
}
