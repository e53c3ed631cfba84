import { code, page, table } from "./markdown.mjs";
import { readInterface } from "./source.mjs";

/** Options that have another name where they are given directly than at `preset.worker`, where their default is listed. */
const presetNames = { concurrency: "concurrentJobs" };

export function makeOptionsPage({ defaults, recoveryDefaults }) {
  const shared = readInterface("src/config/options.ts", "SharedOptions").members;
  const running = [
    ...readInterface("src/config/options.ts", "WorkerSharedOptions").members,
    ...readInterface("src/config/options.ts", "WorkerPoolOptions").members,
  ];
  const work = readInterface("src/runner/runner-options.ts", "RunnerOptions").members;
  const extra = readInterface("src/config/extra-options.ts", "ExtraOptions").members;
  const recovery = readInterface("src/config/extra-options.ts", "RecoveryOptions").members;
  const direct = new Set([...shared, ...running, ...work, ...extra, ...recovery].map(({ name }) => name));
  const preset = readInterface("src/config/preset-options.ts", "WorkerOptions").members.filter(
    ({ name }) => !direct.has(name),
  );
  const localQueue = readInterface("src/config/preset-options.ts", "LocalQueueOptions").members;
  const refetchDelay = readInterface("src/config/preset-options.ts", "RefetchDelayOptions").members;
  const spec = readInterface("src/job.ts", "TaskSpec").members;
  const cron = readInterface("src/cron/cron-item.ts", "CronItemOptions").members;

  const defaultOf = ({ name }) => show(defaults[presetNames[name] ?? name]);
  const list = (members) => optionTable(members, defaultOf);
  return page(
    "# Options",
    intro,
    "## Database and surroundings",
    "For everything that reaches the database: `run`, `runOnce`, `runTaskList`, `makeWorkerUtils`, `addJobAdhoc`, `runMigrations`.",
    list(shared),
    "## Running jobs",
    "For `run`, `runOnce` and `runTaskList`.",
    list([...running, ...extra]),
    "## Tasks and recurring jobs",
    "For `run` and `runOnce`.",
    list(work),
    "## Crash recovery",
    "Inside `recovery`, or beside it: naming one of these switches recovery on. See [crash recovery](../crash-recovery.md).",
    optionTable(recovery, ({ name }) => show(recoveryDefaults[name])),
    "## Only in a preset",
    "These stand at `preset.worker`, in a config file for instance. Everything above may stand there too, except `pgPool`, " +
      "`forbiddenFlags`, `taskList`, `crontab`, `parsedCronItems`, `noHandleSignals` and `preset` itself; `concurrency` is called " +
      "`concurrentJobs` there, and `noPreparedStatements` is `preparedStatements` the other way round.",
    list(preset.filter(({ name }) => name !== "concurrentJobs" && name !== "preparedStatements")),
    "### localQueue",
    optionTable(localQueue, ({ name }) => (name === "ttl" ? "`300000`" : "")),
    "### localQueue.refetchDelay",
    optionTable(refetchDelay, ({ name }) => (name === "threshold" ? "`0`" : "")),
    "## One job",
    "The third argument of `addJob`; for `addJobs` they stand in each job beside `identifier` and `payload`.",
    plainTable(spec),
    "## One recurring job",
    "The `options` of a cron item. How the crontab spells them: [cron and time zones](../cron-and-time-zones.md#options).",
    plainTable(cron.map((member) => ({ ...member, doc: member.doc || docOf(spec, member.name) }))),
    "## Environment",
    environment,
  );
}

const intro = `Options are given to \`run\`, \`makeWorkerUtils\` and their relatives directly, or in a preset under \`worker\`. What is given
directly is stronger. An option that nobody knows is reported in the log, with the name that may have been meant; a value that
cannot work is a \`ConfigError\` before anything starts.

\`\`\`ts
import { run } from "hathi";

const runner = await run({
  connectionString: process.env.DATABASE_URL,
  concurrency: 10,
  recovery: true,
  preset: { worker: { shutdownGracePeriod: 20_000 } },
  taskList: { hello: () => console.log("Hello") },
});
\`\`\`

Times are milliseconds.`;

const environment = table(
  ["variable", "what it does"],
  [
    ["`DATABASE_URL`", "the database, if no option names one"],
    ["`PGDATABASE`, `PGHOST`, `PGUSER` …", "the same, if `DATABASE_URL` is not set either; `PGDATABASE` must be there"],
    ["`GRAPHILE_WORKER_SCHEMA`", "the schema, if no option names one"],
    ["`GRAPHILE_LOGGER_DEBUG`, `GRAPHILE_WORKER_DEBUG`", "show debug messages"],
    ["`NO_LOG_SUCCESS`", "do not log jobs that succeeded"],
    ["`NO_COLOR`", "no colours on the command line"],
  ],
);

function optionTable(members, defaultOf) {
  return table(
    ["option", "what it does"],
    members.map((member) => {
      const byDefault = defaultOf(member);
      return [
        code(member.name),
        `${described(member)}<br>${code(member.type)}${byDefault && `, default ${byDefault}`}`,
      ];
    }),
  );
}

function plainTable(members) {
  return optionTable(members, () => "");
}

/** The reference is only as good as the comments: one that is missing fails here. */
function described({ name, doc }) {
  if (doc === "") throw new Error(`The option '${name}' has no doc comment.`);
  return doc;
}

function docOf(members, name) {
  return members.find((member) => member.name === name)?.doc ?? "";
}

function show(value) {
  return value === undefined ? "" : code(JSON.stringify(value).replace(/,"/g, ', "'));
}
