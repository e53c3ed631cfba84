import { graphileAdapter } from "./graphile-api.mjs";
import { serve } from "./serve.mjs";

// The copy of dist that this run measures.
serve(graphileAdapter(await import(process.env.HATHI_BENCH_ENTRY)));
