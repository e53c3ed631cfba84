import * as ours from "../../dist/index.js";
import { graphileAdapter } from "./graphile-api.mjs";
import { serve } from "./serve.mjs";

serve(graphileAdapter(ours));
