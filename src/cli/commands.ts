import type { Command } from "./command.ts";

/**
 * Every verb of the program, in the order of its help. A new one is a file in `commands/` and a line here. Each is loaded when
 * it is asked for: listing jobs must not wait for the code that runs them.
 */
const loadByName: Readonly<Record<string, () => Promise<Command>>> = {
  run: async () => (await import("./commands/run.ts")).run,
  dashboard: async () => (await import("./commands/dashboard.ts")).dashboard,
  forward: async () => (await import("./commands/forward.ts")).forward,
  init: async () => (await import("./commands/init.ts")).init,
  add: async () => (await import("./commands/add.ts")).add,
  list: async () => (await import("./commands/list.ts")).list,
  show: async () => (await import("./commands/show.ts")).show,
  history: async () => (await import("./commands/history.ts")).history,
  errors: async () => (await import("./commands/errors.ts")).errors,
  why: async () => (await import("./commands/why.ts")).why,
  stats: async () => (await import("./commands/stats.ts")).stats,
  queues: async () => (await import("./commands/queues.ts")).queues,
  workers: async () => (await import("./commands/workers.ts")).workers,
  pause: async () => (await import("./commands/pause.ts")).pause,
  resume: async () => (await import("./commands/pause.ts")).resume,
  pauses: async () => (await import("./commands/pause.ts")).pauses,
  limits: async () => (await import("./commands/limits.ts")).limits,
  "set-limit": async () => (await import("./commands/limits.ts")).setLimit,
  "clear-limit": async () => (await import("./commands/limits.ts")).clearLimit,
  retry: async () => (await import("./commands/retry.ts")).retry,
  reschedule: async () => (await import("./commands/reschedule.ts")).reschedule,
  complete: async () => (await import("./commands/complete.ts")).complete,
  fail: async () => (await import("./commands/fail.ts")).fail,
  cancel: async () => (await import("./commands/cancel.ts")).cancel,
  remove: async () => (await import("./commands/remove.ts")).remove,
  sweep: async () => (await import("./commands/sweep.ts")).sweep,
  "sweep-stale-workers": async () => (await import("./commands/sweep.ts")).sweep,
  "force-unlock": async () => (await import("./commands/force-unlock.ts")).forceUnlock,
  cleanup: async () => (await import("./commands/cleanup.ts")).cleanup,
  cron: async () => (await import("./commands/cron.ts")).cron,
  check: async () => (await import("./commands/check.ts")).check,
  migrate: async () => (await import("./commands/migrate.ts")).migrate,
  audit: async () => (await import("./commands/audit.ts")).audit,
  doctor: async () => (await import("./commands/doctor.ts")).doctor,
};

export const commandNames: readonly string[] = Object.keys(loadByName);

/** The commands that these arguments can mean: one as a rule, and all where yargs has to find out, or to show them. */
export async function loadCommands(args: readonly string[]): Promise<Command[]> {
  const commands = await Promise.all(namesIn(args).map((name) => loadByName[name]!()));
  return [...new Set(commands)];
}

function namesIn(args: readonly string[]): readonly string[] {
  const [first] = args;
  if (first !== undefined && commandNames.includes(first)) return [first];
  const isOpen = args.some((word) => ["--help", "-h"].includes(word) || commandNames.includes(word));
  return isOpen ? commandNames : ["run"];
}
