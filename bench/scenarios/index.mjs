import { s1 } from "./s1-drain.mjs";
import { s2 } from "./s2-enqueue.mjs";
import { s3 } from "./s3-latency.mjs";
import { s4 } from "./s4-start-stop.mjs";
import { s5 } from "./s5-beside-others.mjs";
import { s6 } from "./s6-named-queues.mjs";
import { s7 } from "./s7-pinned-xmin.mjs";
import { s8 } from "./s8-idle.mjs";
import { s9 } from "./s9-failures.mjs";
import { s10 } from "./s10-memory.mjs";
import { s11 } from "./s11-no-statistics.mjs";
import { s12 } from "./s12-slow-among-fast.mjs";
import { s13 } from "./s13-many-tasks.mjs";
import { s14 } from "./s14-limits.mjs";
import { s16 } from "./s16-fleet.mjs";
import { s17 } from "./s17-cancel.mjs";
import { s18 } from "./s18-dashboard.mjs";
import { s19 } from "./s19-metrics.mjs";

const all = [s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s16, s17, s18, s19];

export function chooseScenarios(names) {
  if (names.length === 0) return all;
  return names.map((name) => {
    const found = all.find((scenario) => scenario.name === name);
    if (!found)
      throw new Error(`Unknown scenario '${name}': there are ${all.map((scenario) => scenario.name).join(", ")}.`);
    return found;
  });
}
