import * as graphileWorker from "graphile-worker";
import { graphileAdapter } from "./graphile-api.mjs";
import { serve } from "./serve.mjs";

serve(graphileAdapter(graphileWorker));
