import { readDeclarations, readExportedValues, readMembers, readSignatures } from "./declarations.mjs";
import { code, page, table } from "./markdown.mjs";
import { readSource } from "./source.mjs";

/**
 * The page in its order. `call` is a function with its example; `members` a table of what something has; `methods` some of
 * `QueueUtils`, each with its example; `list` names without examples.
 */
const sections = [
  ["## Run jobs", { call: ["run", "runOnce", "runWatching", "runTaskList", "runTaskListOnce"] }],
  ["### Runner", { members: "Runner" }],
  ["### WorkerPool", { members: "WorkerPool" }],
  ["## Tasks", { call: ["defineTask", "defineBatchTask"] }],
  ["### Task helpers", { members: "TaskHelpers", example: true }],
  ["## Add jobs", { call: ["makeWorkerUtils"] }],
  ["", { methods: ["addJob", "addJobs", "addBatchJob", "withTransaction", "transaction"] }],
  ["## Inspect jobs", { methods: ["listJobs", "countJobs", "getJob", "explainJob", "getJobStats", "getJobTimes"] }],
  [
    "",
    {
      methods: [
        "waitForJob",
        "addJobAndWait",
        "onProgress",
        "listHistory",
        "getJobHistory",
        "getJobLinks",
        "listErrors",
      ],
    },
  ],
  ["", { methods: ["listQueues", "listWorkers", "listCrontabs"] }],
  ["", { methods: ["scanJobs", "getJobFigures", "getJobTrends", "indexStates"] }],
  ["## Change jobs", { methods: ["removeJob", "rescheduleJobs", "retryJobs", "completeJobs", "permanentlyFailJobs"] }],
  ["", { methods: ["cancelJobs", "changeMatchingJobs", "pause", "resume", "listPauses"] }],
  ["", { methods: ["setLimit", "clearLimit", "listLimits", "listWaitingKeys"] }],
  [
    "## Write down what is done by hand",
    { methods: ["beginAction", "reportAction", "stopAction", "getAction", "listActions", "deleteActions"] },
  ],
  ["## Maintain", { methods: ["examineHealth", "checkPayloads", "listActiveWorkers", "sweepStaleWorkers"] }],
  ["", { methods: ["forceUnlockWorkers", "cleanup", "planMigration", "migrate", "schema", "logger"] }],
  ["", { methods: ["withPgClient", "release"] }],
  ["", { call: ["runMigrations", "addJobAdhoc", "quickAddJob"] }],
  ["## Recurring jobs", { members: "cron", example: true }],
  ["### A cron entry", { members: "CronEntry", example: true }],
  ["", { call: ["parseCrontab", "parseCronItems"] }],
  ["## Tests", { call: ["openTestQueue"] }],
  ["### TestQueue", { members: "TestQueue" }],
  ["### clock", { members: "TestClock", example: true }],
  ["", { call: ["startTestDatabase"] }],
  ["## Dashboard", { call: ["createDashboard", "serveDashboard"] }],
  ["## Metrics", { call: ["makeMetrics", "metricsHandler", "serveMetrics"] }],
  ["## Forwarding", { call: ["forward", "nats", "rabbitmq", "kafka", "bullmq"] }],
  ["## Hooks and logs", { call: ["makeHooks", "makeLogFactory"] }],
  [
    "## Smaller things",
    {
      list: [
        "getTasks",
        "getCronItems",
        "parseCronItem",
        "isTaskDefinition",
        "payloadRulesOf",
        "isValidTask",
        "HookRegistry",
        "Logger",
        "consoleLogFactory",
        "describeDatabaseFailure",
        "isSchemaMissing",
        "isTransient",
        "isBadValue",
        "describePause",
        "describeSweep",
        "errorStack",
        "toError",
        "WorkerPreset",
        "version",
        "INFRASTRUCTURE_RESILIENT_FLAG",
        "LocalQueueModes",
        "$$isParsed",
      ],
    },
  ],
];
/** Arguments and results of the functions above. */
const types = [
  "JobFilter",
  "PageOptions",
  "JobPage",
  "HistoryFilter",
  "HistoryPageOptions",
  "HistoryPage",
  "JobLinks",
  "ListErrorsOptions",
  "RescheduleOptions",
  "ChangeMatchingOptions",
  "ChangeMatchingResult",
  "CancelOptions",
  "CancelResult",
  "PauseOptions",
  "JobStats",
  "TaskTimes",
  "ListQueuesOptions",
  "CleanupOptions",
  "SweepStaleWorkersOptions",
  "CheckPayloadsOptions",
  "PayloadReport",
  "JobOutcome",
  "RunDueOptions",
  "ForwardOptions",
  "ForwardMessage",
];
/** A promise's own, of a pool that can be awaited. */
const ofPromises = ["then", "catch", "finally"];

export function makeFunctionsPage() {
  const declarations = readDeclarations();
  const examples = readExamples();
  const parts = sections.flatMap(([title, part]) => [...(title ? [title] : []), ...describePart(part)]);
  const unused = [...examples.keys()];
  if (unused.length > 0) throw new Error(`Examples for what is not on the page: ${unused.join(", ")}.`);
  checkComplete(membersOf("QueueUtils").map(({ name }) => `utils.${name}`));
  return page("# Functions", intro, ...parts, "## Options and results", typesIntro, ...types.flatMap(describeType));

  function describePart({ call, members, methods, list, example }) {
    if (call) return call.flatMap((name) => [`### ${name}`, ...describeCall(name)]);
    if (methods) return methods.flatMap(describeMethod);
    if (list) return [memberTable(list.map((name) => ({ name, ...declared(name) })))];
    const { doc } = declared(members);
    return [doc, ...(example ? [exampleOf(members)] : []), memberTable(membersOf(members))].filter(Boolean);
  }

  function describeCall(name) {
    const { doc, signatures } = declared(name);
    return [signatureBlock(signatures), described(name, doc), exampleOf(name)];
  }

  function describeMethod(name) {
    const { doc, signatures } = membersOf("QueueUtils").find((member) => member.name === name);
    return [`### utils.${name}`, signatureBlock(signatures), described(name, doc), exampleOf(`utils.${name}`)];
  }

  function membersOf(name) {
    return readMembers(declarations, name).filter((member) => !ofPromises.includes(member.name));
  }

  function declared(name) {
    const found = declarations.get(name);
    if (!found) throw new Error(`There is no declaration of '${name}' in src.`);
    const isCall = found.nodes[0].params !== undefined;
    const doc = found.doc.replace(/^@deprecated/, "Deprecated.");
    return { doc, signatures: isCall ? readSignatures(declarations, name) : [] };
  }

  function describeType(name) {
    return [`### ${name}`, ...[declared(name).doc].filter(Boolean), memberTable(membersOf(name), true)];
  }

  function exampleOf(name) {
    const example = examples.get(name);
    if (!example) throw new Error(`'${name}' has no example in scripts/reference/function-examples.md.`);
    examples.delete(name);
    return example;
  }
}

const intro = `Everything that \`import { … } from "hathi"\` gives, and what \`hathi/testing\`, \`hathi/dashboard\`, \`hathi/metrics\` and \`hathi/forward\` give. Options have [a page of their own](options.md), and so do
[errors](errors.md). The examples run as they are, on the database in \`DATABASE_URL\`; one with a file name needs a project around it.`;

const typesIntro = "A field with `?` may be left out.";

function memberTable(members, isType = false) {
  return table(
    ["name", "what it is"],
    members.map(({ name, doc, signatures }) => [
      code(name),
      [isType ? doc : described(name, doc), ...signatures.map(code)].filter(Boolean).join("<br>"),
    ]),
  );
}

function signatureBlock(signatures) {
  return ["```typescript", ...signatures.map(wrap), "```"].join("\n");
}

/** One argument a line, if the line would be too wide for the page. */
function wrap(signature) {
  if (signature.length <= 90) return signature;
  const [, name, params, returns] = /^(\w+)\((.*)\): (.*)$/.exec(signature);
  return [`${name}(`, ...params.split(/, (?=[\w.]+\??:)/).map((param) => `  ${param},`), `): ${returns}`].join("\n");
}

function described(name, doc) {
  if (doc === "") throw new Error(`'${name}' has no doc comment.`);
  return doc;
}

/** The blocks of the file of examples, by the heading above each. */
function readExamples() {
  const text = readSource("scripts/reference/function-examples.md");
  return new Map([...text.matchAll(/^## (.+)\n\n(```[\s\S]*?^```)$/gm)].map(([, name, block]) => [name, block]));
}

/** Errors are classes with a page of their own; the interface of the clock has its comments. */
function checkComplete(methodNames) {
  const named = sections.flatMap(([, { call = [], list = [], members = [], methods = [] }]) => [
    ...[call, list, members].flat(),
    ...methods.map((name) => `utils.${name}`),
  ]);
  const exported = [
    "src/index.ts",
    "src/testing/index.ts",
    "src/metrics/index.ts",
    "src/dashboard/server/index.ts",
    "src/forward/index.ts",
  ].flatMap(readExportedValues);
  const wanted = [...exported.filter((name) => !name.endsWith("Error") && name !== "clock"), ...methodNames];
  const missing = wanted.filter((name) => !named.includes(name));
  if (missing.length > 0) throw new Error(`Not on the page of functions: ${missing.join(", ")}.`);
}
