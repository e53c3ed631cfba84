import { code, page, table } from "./markdown.mjs";
import { readInterface, readTable } from "./source.mjs";

/** `tables` are those of src/config and src/runner/runner-options.ts, as they are when the program runs. */
export function makeOptionsPage(tables) {
  const config = "src/config/options.ts";
  const rowsOf = (path, name) =>
    readTable(path, name).map(({ name: key, doc }) => {
      const { kind, default: byDefault, place } = tables[name][key];
      return { name: key, doc, type: kind.type, default: kind.inner ? undefined : byDefault, place };
    });
  const shared = rowsOf(config, "sharedTable");
  const running = ["workerSharedTable", "poolTable", "extraTable"].flatMap((name) => rowsOf(config, name));
  const work = [...rowsOf("src/runner/runner-options.ts", "workTable"), ...rowsOf(config, "filesTable")];
  const everywhere = [...shared, ...running, ...work];
  const spec = [
    ...readInterface("src/job.ts", "TaskSpec").members,
    ...readInterface("src/guards.ts", "GuardOptions").members,
  ];
  const cron = readInterface("src/cron/cron-item.ts", "CronItemOptions").members;

  return page(
    "# Options",
    intro,
    "## Database and surroundings",
    "For everything that reaches the database: `run`, `runOnce`, `runTaskList`, `makeWorkerUtils`, `addJobAdhoc`, `runMigrations`.",
    optionTable(shared),
    "## Running jobs",
    "For `run`, `runOnce` and `runTaskList`.",
    optionTable(running),
    "## Tasks and recurring jobs",
    "For `run` and `runOnce`.",
    optionTable(work),
    "## Crash recovery",
    "Inside `recovery`, or beside it: naming one of these switches recovery on. See [crash recovery](../crash-recovery.md).",
    optionTable(rowsOf("src/config/recovery-options.ts", "recoveryTable")),
    "## Only in a preset",
    `These stand at \`preset.worker\`, in a config file for instance. Everything above may stand there too, except ${listOf(everywhere)}. ` +
      "`concurrency` is called `concurrentJobs` there, and `noPreparedStatements` is `preparedStatements` the other way round.",
    optionTable(rowsOf(config, "presetTable")),
    "### localQueue",
    optionTable(rowsOf("src/config/local-queue-options.ts", "localQueueTable")),
    "### localQueue.refetchDelay",
    optionTable(rowsOf("src/config/local-queue-options.ts", "refetchDelayTable")),
    "## One job",
    "The third argument of `addJob`; for `addJobs` they stand in each job beside `identifier` and `payload`. A job of `addJobs` has " +
      "the `jobKeyMode` `replace` or `preserve_run_at`; `true` as second argument makes `preserve_run_at` the mode of those that " +
      "name none. `unsafe_dedupe` works with `addJob` only.",
    optionTable(spec),
    "## One recurring job",
    "The `options` of a cron item. How the crontab spells them: [cron and time zones](../cron-and-time-zones.md#options).",
    optionTable(cron.map((member) => ({ ...member, doc: member.doc || docOf(spec, member.name) }))),
    "## Environment",
    environment,
  );
}

/** The options that can only be given directly. */
function listOf(rows) {
  const names = rows.filter(({ place }) => place === "direct").map(({ name }) => code(name));
  return `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

const intro = `Options are given to \`run\`, \`makeWorkerUtils\` and their relatives directly, or in a preset under \`worker\`. Options given
directly win. \`null\` means that an option is not given, and a number may be given as a string. An invalid value is a
\`ConfigError\` before anything starts.

An unknown option is ignored with a warning that suggests the name that may have been meant, in presets, config files and groups such
as \`recovery\` too. Plugins may have options of their own at \`preset.worker\`: if your preset has plugins, an unknown name there is
reported only if it resembles one of ours.

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

function optionTable(rows) {
  return table(
    ["option", "what it does"],
    rows.map((row) => {
      const byDefault = show(row.default);
      return [code(row.name), `${described(row)}<br>${code(row.type)}${byDefault && `, default ${byDefault}`}`];
    }),
  );
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
