import type { Limit, LimitTarget } from "../../index.ts";
import { defineCommand } from "../command.ts";
import { databaseFlags, jsonFlag } from "../flags.ts";
import { formatCount, formatMoment } from "../job-table.ts";
import { formatTable } from "../table.ts";
import { UsageError } from "../usage-error.ts";
import { withUtils } from "../with-utils.ts";

export const limits = defineCommand({
  command: "limits",
  describe: "List concurrency limits, rate limits and turns, with what was set at run time",
  flags: { ...databaseFlags, ...jsonFlag },
  async run(args, terminal) {
    const found = await withUtils(args, (utils) => utils.listLimits());
    if (args.json) return terminal.printJson(found);
    if (found.length === 0) return terminal.note("No task has limits.");
    terminal.print(
      formatTable(
        found.flatMap(toLines),
        [
          { title: "LIMIT", text: (line) => line.name, maxWidth: 40, minWidth: 8 },
          { title: "KIND", text: (line) => line.kind },
          { title: "KEY", text: (line) => line.key, maxWidth: 40, minWidth: 6 },
          { title: "VALUE", text: (line) => line.value },
          { title: "RUNNING", text: (line) => line.running, align: "right" },
          { title: "WAITING", text: (line) => line.waiting, align: "right" },
          { title: "TASKS", text: (line) => line.tasks, maxWidth: 60, minWidth: 8, drop: 2 },
          { title: "SET", text: (line) => line.set, maxWidth: 60, minWidth: 8, drop: 1 },
        ],
        terminal.width,
      ),
    );
  },
});

type Line = Record<"name" | "kind" | "key" | "value" | "running" | "waiting" | "tasks" | "set", string>;

/** A line for the limit, one for each key with a value of its own, and one for each hold. */
function toLines(limit: Limit): Line[] {
  const { name, kind, running, waiting } = limit;
  const rest = { name: "", kind: "", running: "", waiting: "", tasks: "" };
  const isChanged = limit.definedLimit !== limit.limit && limit.limit !== null;
  return [
    {
      name: limit.isShared ? `${name} (shared)` : name,
      kind,
      key: limit.key ?? "",
      value: describeValue(limit.limit, limit.periodMs, limit.burst, limit.weight === 1 ? null : limit.weight),
      running: formatCount(running),
      waiting: waiting > 10_000 ? "> 10,000" : formatCount(waiting),
      tasks: limit.tasks.join(", "),
      set: limit.isSetAtRunTime
        ? "at run time"
        : isChanged
          ? `at run time; code says ${limit.definedLimit}`
          : "in code",
    },
    ...limit.overrides.map((override) => ({
      ...rest,
      key: `= ${override.key}`,
      value: describeValue(
        override.limit,
        override.limit === null ? null : (override.periodMs ?? limit.periodMs),
        override.burst ?? 0,
        override.weight,
      ),
      set: "at run time",
    })),
    ...limit.holds.map((hold) => ({
      ...rest,
      key: hold.key === null ? "" : `= ${hold.key}`,
      value: `held until ${formatMoment(hold.until)}`,
      set: hold.reason ?? "",
    })),
  ];
}

function describeValue(limit: number | null, periodMs: number | null, burst: number, weight: number | null): string {
  const parts = [
    ...(limit === null ? [] : [periodMs === null ? String(limit) : `${limit} per ${periodMs / 1000} s`]),
    ...(burst > 0 ? [`burst ${burst}`] : []),
    ...(weight === null ? [] : [`weight ${weight}`]),
  ];
  return parts.join(", ") || "turns";
}

const targetFlags = {
  key: { type: "string", requiresArg: true, describe: "One value of the limit's key; the limit itself, if left out" },
  kind: {
    type: "string",
    choices: ["concurrency", "rate", "fair"],
    requiresArg: true,
    describe: "Which limit, if the name has several",
  },
  path: { type: "string", requiresArg: true, describe: "Which limit, by the path of its key in the payload" },
} as const;

export const setLimit = defineCommand({
  command: "set-limit <name>",
  describe: "Change the limit of a task, of a shared limit or of one key, in all processes",
  positionals: {
    name: { type: "string", demandOption: true, describe: "A task's identifier, or a shared limit's name" },
  },
  flags: {
    ...databaseFlags,
    ...targetFlags,
    limit: {
      type: "number",
      requiresArg: true,
      describe: "Jobs that may run at once, or start in a period; 0 stops them",
    },
    period: { type: "string", requiresArg: true, describe: "Of a rate limit, such as 1m" },
    burst: { type: "number", requiresArg: true, describe: "Of a rate limit" },
    weight: { type: "number", requiresArg: true, describe: "How many jobs a key starts in its turn" },
  },
  async run(args, terminal) {
    const { limit, period, burst, weight } = args;
    if ([limit, period, burst, weight].every((value) => value === undefined)) {
      throw new UsageError("Give one of --limit, --period, --burst or --weight.");
    }
    const change = {
      ...targetOf(args),
      ...(limit !== undefined && { limit }),
      ...(period !== undefined && { period }),
      ...(burst !== undefined && { burst }),
      ...(weight !== undefined && { weight }),
    };
    await withUtils(args, (utils) => utils.setLimit(args.name, change));
    terminal.print("Set.");
  },
});

export const clearLimit = defineCommand({
  command: "clear-limit <name>",
  describe: "Undo what set-limit changed",
  positionals: {
    name: { type: "string", demandOption: true, describe: "A task's identifier, or a shared limit's name" },
  },
  flags: { ...databaseFlags, ...targetFlags, ...jsonFlag },
  async run(args, terminal) {
    const cleared = await withUtils(args, (utils) => utils.clearLimit(args.name, targetOf(args)));
    if (args.json) terminal.printJson({ cleared });
    else if (cleared) terminal.print("Cleared.");
    else terminal.note("Nothing was set.");
  },
});

function targetOf(args: {
  key?: string | undefined;
  kind?: string | undefined;
  path?: string | undefined;
}): LimitTarget {
  const { key, kind, path } = args;
  return {
    ...(key !== undefined && { key }),
    ...(kind !== undefined && { kind: kind as NonNullable<LimitTarget["kind"]> }),
    ...(path !== undefined && { path }),
  };
}
