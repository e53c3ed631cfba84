import { code, page, table } from "./markdown.mjs";

/** Flags that many commands have; said once. */
const sharedNames = ["connection", "schema", "config", "json", "yes"];

export function makeCliPage(commands) {
  const shared = new Map();
  for (const { flags } of commands) {
    for (const name of sharedNames) if (flags[name]) shared.set(name, flags[name]);
  }
  return page(
    "# Command line",
    intro,
    table(
      ["command", "what it does"],
      commands.map((command) => [`[${code(`hathi ${verbOf(command)}`)}](#${anchorOf(command)})`, command.describe]),
    ),
    "## Flags of most commands",
    flagTable([...shared]),
    ...commands.flatMap(describeCommand),
    "## Exit codes",
    exitCodes,
  );
}

const intro = `\`npx hathi\` without a command runs a worker. \`graphile-worker\` is another name for the same program, for projects that
use it. Flags may be written \`--max-pool-size\` or \`--maxPoolSize\`. Results go to stdout, everything else to stderr.

Which database: \`--connection\`, else the config file's, else \`DATABASE_URL\`, else the \`PG*\` variables, else the embedded
one of this folder (if \`@hathi/embedded\` is installed).`;

const exitCodes = `- **0**: success. A worker that drained after SIGTERM also exits with 0.
- **1**: a wrong argument, or a failure; one line on stderr describes it. \`hathi check\` and \`hathi doctor\` exit with 1 when they
  find a problem, \`hathi why\` and \`hathi show\` when there is no such job.
- **57**: the schema was changed by a newer version in a way that this one does not understand.`;

function describeCommand(command) {
  const flags = Object.entries(command.flags).filter(([name]) => !sharedNames.includes(name));
  const common = sharedNames.filter((name) => command.flags[name]);
  const positionals = Object.entries(command.positionals ?? {});
  return [
    `## ${verbOf(command)}`,
    `\`hathi ${usageOf(command)}\``,
    `${command.describe}.${aliasesOf(command)}`,
    ...(positionals.length > 0
      ? [
          table(
            ["argument", "what it is"],
            positionals.map(([name, { describe }]) => [code(name), describe ?? ""]),
          ),
        ]
      : []),
    ...(flags.length > 0 ? [flagTable(flags)] : []),
    ...(common.length > 0 ? [`Also: ${common.map((name) => code(`--${name}`)).join(", ")}.`] : []),
  ];
}

function flagTable(flags) {
  return table(
    ["flag", "what it does"],
    flags.map(([name, options]) => [namesOf(name, options), `${options.describe ?? ""}${detailsOf(options)}`]),
  );
}

function namesOf(name, { alias }) {
  return [name, ...[alias ?? []].flat()].map((each) => code(each.length === 1 ? `-${each}` : `--${each}`)).join(", ");
}

/** A switch that is off needs no further words. */
function detailsOf({ type = "string", array, choices, default: byDefault }) {
  if (type === "boolean") return byDefault === true ? "<br>default `true`" : "";
  const kind = choices ? choices.map((choice) => code(String(choice))).join(", ") : type;
  return `<br>${kind}${array ? ", may be repeated" : ""}${byDefault === undefined ? "" : `, default ${code(String(byDefault))}`}`;
}

function usageOf({ command }) {
  return [command].flat()[0];
}

function verbOf(command) {
  return usageOf(command).split(" ")[0];
}

function anchorOf(command) {
  return verbOf(command).toLowerCase();
}

function aliasesOf({ command }) {
  const others = [command]
    .flat()
    .slice(1)
    .filter((name) => name !== "$0");
  const isDefault = [command].flat().includes("$0");
  return `${others.length > 0 ? ` Also called ${others.map(code).join(", ")}.` : ""}${isDefault ? " The default command." : ""}`;
}
