import { hostname, userInfo } from "node:os";
import { describePause, type PauseTarget } from "../../index.ts";
import { printable } from "../../util/printable.ts";
import { defineCommand } from "../command.ts";
import { databaseFlags, jsonFlag, parseMoment } from "../flags.ts";
import { formatMoment } from "../job-table.ts";
import { formatTable } from "../table.ts";
import { UsageError } from "../usage-error.ts";
import { withUtils } from "../with-utils.ts";

const targetFlags = {
  task: { alias: "identifier", type: "string", requiresArg: true, describe: "A task's identifier" },
  queue: { type: "string", requiresArg: true, describe: "A queue's name, which need not exist yet" },
  worker: { type: "string", requiresArg: true, describe: "A worker's id, as 'hathi workers' lists it" },
  cron: { type: "string", requiresArg: true, describe: "A crontab entry, as 'hathi cron list' shows it" },
  all: { type: "boolean", default: false, describe: "Everything in the schema" },
} as const;

export const pause = defineCommand({
  command: "pause",
  describe: "Stop starting jobs of a task, a queue, a worker or a crontab entry, or all; running jobs finish",
  flags: {
    ...databaseFlags,
    ...targetFlags,
    ...jsonFlag,
    until: {
      type: "string",
      requiresArg: true,
      describe: "When it ends by itself: a date, or how long from now (15m, 2h)",
    },
    reason: { type: "string", requiresArg: true, describe: "Why; shown wherever the pause is shown" },
  },
  async run(args, terminal) {
    const target = targetOf(args);
    const until = args.until === undefined ? undefined : parseMoment("until", args.until, 1);
    if (until && until.getTime() <= Date.now())
      throw new UsageError(`--until must be in the future, got '${args.until}'.`);
    const options = { until, reason: args.reason, by: `${userInfo().username}@${hostname()}` };
    const paused = await withUtils(args, (utils) => utils.pause(target, options));
    if (args.json) terminal.printJson(paused);
    else terminal.print(`Paused: ${printable(describePause(paused))}`);
  },
});

export const resume = defineCommand({
  command: "resume",
  describe: "End a pause; other pauses stay",
  flags: { ...databaseFlags, ...targetFlags, ...jsonFlag },
  async run(args, terminal) {
    const target = targetOf(args);
    const wasPaused = await withUtils(args, (utils) => utils.resume(target));
    if (args.json) terminal.printJson({ wasPaused });
    else if (wasPaused) terminal.print("Resumed.");
    else terminal.note("It was not paused.");
  },
});

export const pauses = defineCommand({
  command: "pauses",
  describe: "List what is paused",
  flags: { ...databaseFlags, ...jsonFlag },
  async run(args, terminal) {
    const found = await withUtils(args, (utils) => utils.listPauses());
    if (args.json) return terminal.printJson(found);
    if (found.length === 0) return terminal.note("Nothing is paused.");
    terminal.print(
      formatTable(
        found,
        [
          {
            title: "PAUSED",
            text: ({ kind, name }) => (name === null ? "everything" : `${kind} '${name}'`),
            maxWidth: 60,
            minWidth: 15,
          },
          { title: "SINCE", text: (entry) => formatMoment(entry.pausedAt), drop: 2 },
          { title: "UNTIL", text: (entry) => (entry.until ? formatMoment(entry.until) : "resumed") },
          { title: "BY", text: (entry) => entry.pausedBy ?? "", maxWidth: 40, minWidth: 8, drop: 1 },
          { title: "REASON", text: (entry) => entry.reason ?? "", maxWidth: 80, minWidth: 12, drop: 0 },
        ],
        terminal.width,
      ),
    );
  },
});

interface TargetArgs {
  readonly task?: string | undefined;
  readonly queue?: string | undefined;
  readonly worker?: string | undefined;
  readonly cron?: string | undefined;
  readonly all: boolean;
}

function targetOf({ task, queue, worker, cron, all }: TargetArgs): PauseTarget {
  const targets: PauseTarget[] = [
    ...(task === undefined ? [] : [{ task }]),
    ...(queue === undefined ? [] : [{ queue }]),
    ...(worker === undefined ? [] : [{ worker }]),
    ...(cron === undefined ? [] : [{ cron }]),
    ...(all ? [{ all } as const] : []),
  ];
  const [target] = targets;
  if (!target || targets.length > 1) throw new UsageError("Give one of --task, --queue, --worker, --cron or --all.");
  return target;
}
