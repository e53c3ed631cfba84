import { createReadStream } from "node:fs";
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import type { AddJobsJobSpec, JobKeyMode, QueueUtils, TaskSpec } from "../../index.ts";
import { printable } from "../../util/printable.ts";
import { defineCommand } from "../command.ts";
import { databaseFlags, jsonFlag, parseMoment } from "../flags.ts";
import { formatCount } from "../job-table.ts";
import { parseJobLine } from "../parse-job-line.ts";
import type { Terminal } from "../terminal.ts";
import { UsageError } from "../usage-error.ts";
import { withUtils } from "../with-utils.ts";

const modes = ["replace", "preserve-run-at", "unsafe-dedupe", "preserve_run_at", "unsafe_dedupe"] as const;

export const add = defineCommand({
  command: "add [task]",
  describe: "Add a job, or all jobs of a file",
  flags: {
    ...databaseFlags,
    ...jsonFlag,
    payload: { alias: "p", type: "string", requiresArg: true, describe: "The payload, as JSON" },
    "payload-file": { type: "string", requiresArg: true, describe: "A file with the payload, as JSON" },
    queue: { type: "string", requiresArg: true, describe: "Run one after the other with jobs of the same queue" },
    "run-at": { type: "string", requiresArg: true, describe: "A date, or how long from now (30s, 15m, 2h, 7d)" },
    priority: { type: "number", requiresArg: true, describe: "Lower numbers run first" },
    "max-attempts": { type: "number", requiresArg: true, describe: "Attempts at most (default: 25)" },
    key: { alias: "job-key", type: "string", requiresArg: true, describe: "Replace the waiting job with this key" },
    "job-key-mode": { choices: modes, requiresArg: true, describe: "What to do if the key is taken" },
    flag: { type: "string", array: true, requiresArg: true, describe: "Mark the job; may be repeated" },
    file: {
      type: "string",
      requiresArg: true,
      describe:
        "Add the jobs of a file, one JSON object with task, payload and the like per line ('-' for stdin): all of them or none",
    },
  },
  positionals: { task: { type: "string", describe: "The task's identifier" } },
  async run(args, terminal) {
    if ((args.task === undefined) === (args.file === undefined)) {
      throw new UsageError("Give either the task of a job, or --file with many jobs.");
    }
    const payload = await readPayload(args.payload, args["payload-file"]);
    const spec = specOf(args);
    return withUtils(
      args,
      async (utils) => {
        if (args.file !== undefined) {
          const count = await addFromFile(utils, args.file, spec.jobKeyMode, terminal);
          return args.json ? terminal.printJson({ added: count }) : terminal.print(`${formatCount(count)} jobs added.`);
        }
        const job = await utils.addJob(args.task!, payload, spec);
        await warnOfNoWorker(utils, job.id, terminal);
        if (args.json) return terminal.printJson(job);
        const what = job.revision > 0 ? "updated" : "added";
        terminal.print(`Job ${job.id} (${printable(job.task_identifier)}) ${what}.`);
      },
      { migrate: true },
    );
  },
});

/** A job with a misspelt task waits endlessly. */
async function warnOfNoWorker(utils: QueueUtils, id: string, terminal: Terminal): Promise<void> {
  const { reasons } = await utils.explainJob(id);
  for (const reason of reasons) if (reason.kind === "no-worker-for-task") terminal.note(`Warning: ${reason.message}`);
}

async function readPayload(text: string | undefined, file: string | undefined): Promise<unknown> {
  if (text !== undefined && file !== undefined)
    throw new UsageError("Give either --payload or --payload-file, not both.");
  const source = file === undefined ? text : await readFile(file, "utf8");
  if (source === undefined) return {};
  try {
    return JSON.parse(source);
  } catch (error) {
    throw new UsageError(
      `The payload${file ? ` in '${file}'` : ""} is not JSON, such as '{"name":"Ada"}': ${(error as Error).message}`,
    );
  }
}

function specOf(args: {
  queue: string | undefined;
  "run-at": string | undefined;
  priority: number | undefined;
  "max-attempts": number | undefined;
  key: string | undefined;
  "job-key-mode": (typeof modes)[number] | undefined;
  flag: string[] | undefined;
  file: string | undefined;
}): TaskSpec {
  const { queue, priority, key, flag, "run-at": runAt, "max-attempts": maxAttempts, "job-key-mode": mode } = args;
  if (mode !== undefined && key === undefined && args.file === undefined)
    throw new UsageError("--job-key-mode needs --key.");
  return {
    ...(queue !== undefined && { queueName: queue }),
    ...(runAt !== undefined && { runAt: parseMoment("run-at", runAt, 1) }),
    ...(priority !== undefined && { priority }),
    ...(maxAttempts !== undefined && { maxAttempts }),
    ...(key !== undefined && { jobKey: key }),
    ...(mode !== undefined && { jobKeyMode: mode.replaceAll("-", "_") as JobKeyMode }),
    ...(flag !== undefined && flag.length > 0 && { flags: flag }),
  };
}

const batchSize = 5_000;

/** In one transaction, so that a fault in line 999,999 leaves nothing behind. */
async function addFromFile(
  utils: QueueUtils,
  file: string,
  mode: JobKeyMode | undefined,
  terminal: Terminal,
): Promise<number> {
  if (mode === "unsafe_dedupe") throw new UsageError("--job-key-mode unsafe-dedupe works for single jobs only.");
  const input = file === "-" ? process.stdin : createReadStream(file);
  return utils.transaction(async (jobs) => {
    let added = 0;
    let batch: AddJobsJobSpec[] = [];
    const flush = async (): Promise<void> => {
      added += (await jobs.addJobs(batch, mode === "preserve_run_at")).length;
      batch = [];
      terminal.progress(`${formatCount(added)} jobs…`);
    };
    try {
      let number = 0;
      for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
        number += 1;
        if (line.trim() !== "") batch.push(parseJobLine(line, `${file}:${number}`));
        if (batch.length >= batchSize) await flush();
      }
      if (batch.length > 0) await flush();
      return added;
    } finally {
      terminal.clearProgress();
    }
  });
}
