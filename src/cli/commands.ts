import type { Command } from "./command.ts";
import { add } from "./commands/add.ts";
import { check } from "./commands/check.ts";
import { cleanup } from "./commands/cleanup.ts";
import { complete } from "./commands/complete.ts";
import { cron } from "./commands/cron.ts";
import { doctor } from "./commands/doctor.ts";
import { fail } from "./commands/fail.ts";
import { forceUnlock } from "./commands/force-unlock.ts";
import { init } from "./commands/init.ts";
import { list } from "./commands/list.ts";
import { migrate } from "./commands/migrate.ts";
import { queues } from "./commands/queues.ts";
import { remove } from "./commands/remove.ts";
import { reschedule } from "./commands/reschedule.ts";
import { retry } from "./commands/retry.ts";
import { run } from "./commands/run.ts";
import { show } from "./commands/show.ts";
import { stats } from "./commands/stats.ts";
import { sweep } from "./commands/sweep.ts";
import { why } from "./commands/why.ts";
import { workers } from "./commands/workers.ts";

/** Every verb of the program, in the order of its help. A new one is a file in `commands/` and a line here. */
export const commands: readonly Command[] = [
  run,
  init,
  add,
  list,
  show,
  why,
  stats,
  queues,
  workers,
  retry,
  reschedule,
  complete,
  fail,
  remove,
  sweep,
  forceUnlock,
  cleanup,
  cron,
  check,
  migrate,
  doctor,
];
