import { readExportedValues } from "./declarations.mjs";
import { code, page, table } from "./markdown.mjs";
import { docAbove, readSource } from "./source.mjs";

const files = [
  "src/errors.ts",
  "src/cron/crontab-error.ts",
  "src/tasks/task-file-error.ts",
  "src/wait-errors.ts",
  "src/job-errors.ts",
];
/** Classes that have a section of their own. */
const forWaiting = ["JobFailedError", "WaitTimeoutError", "JobUnknownError"];
const forTasks = ["SnoozeError", "RateLimitError", "UnrecoverableError", "CancelJobError"];
const forSignals = ["JobCancelledError", "TimeoutError", "JobLostError", "ShutdownAbortError"];
/** What the public functions raise. */
const sqlFiles = ["000002-sql-api", "000011-add-guards", "000008-pause", "000015-limits", "000016-limit-changes"];

export function makeErrorsPage() {
  const errors = files.flatMap(readErrors);
  const exported = readExportedValues("src/index.ts").filter((name) => /^[A-Z].*Error$/.test(name));
  const missing = exported.filter((name) => name !== "HathiError" && errors.every((error) => error.name !== name));
  if (missing.length > 0) throw new Error(`Not on the page of errors: ${missing.join(", ")}.`);
  const special = [...forWaiting, ...forTasks, ...forSignals];
  const rest = errors.map(({ name }) => name).filter((name) => !special.includes(name));
  return page(
    "# Errors",
    intro,
    describe(rest),
    "## From waitForJob and addJobAndWait",
    describe(forWaiting),
    "## Why a job's signal fired",
    "`helpers.abortSignal.reason` is one of these; see [the signal](../control.md#the-signal).",
    describe(forSignals),
    "## What a task throws",
    tasks,
    describe(forTasks),
    "## From SQL",
    "The SQL functions raise these, with a message that has the value in it. In Node they arrive as `pg`'s `DatabaseError` with this `code`.",
    table(
      ["SQLSTATE", "message"],
      readSqlErrors().map(({ state, message }) => [code(state), message]),
    ),
    "## From the embedded server",
    "`@hathi/embedded` throws an `EmbeddedError`. Its `code` is one of these:",
    table(
      ["`code`", "what it means"],
      readEmbeddedCodes().map(({ name, doc }) => [code(name), doc]),
    ),
  );

  function describe(names) {
    return table(
      ["class", "`code`", "what it means", "fields"],
      names
        .map((wanted) => errors.find(({ name }) => name === wanted))
        .map(({ name, errorCode, doc, fields }) => [code(name), code(errorCode), doc, fields.map(code).join(", ")]),
    );
  }
}

const intro = `Every error that Hathi throws on purpose is a \`HathiError\` with a \`code\` that does not change; the message may change. Test
for the code or the class:

\`\`\`ts
import { makeWorkerUtils, PayloadError } from "hathi";

const utils = await makeWorkerUtils({ connectionString: process.env.DATABASE_URL });
try {
  await utils.addJob("send-email", { to: "ada@example.com" });
} catch (error) {
  if (!(error instanceof PayloadError)) throw error;
  console.error(error.issues);
} finally {
  await utils.release();
}
\`\`\``;

const tasks = `Whatever a task throws becomes the \`last_error\` of its job (the message) and the \`error\` of \`job:error\`. Something that is not an
\`Error\` is wrapped in one, with what was thrown as its \`cause\`. The job is retried after e^attempts seconds (at most
e^10, six hours) until its attempts are used up; see [job states](../job-states.md). These errors decide otherwise:`;

function readErrors(path) {
  const lines = readSource(path).split("\n");
  return lines.flatMap((line, index) => {
    const [, name] = /^export class (\w+) extends HathiError/.exec(line) ?? [];
    if (name === undefined) return [];
    const body = lines.slice(index, lines.indexOf("}", index)).join("\n");
    const [, errorCode] = /code = "(\w+)"/.exec(body);
    const fields = [...body.matchAll(/^ {2}readonly (\w+):/gm)].map(([, field]) => field);
    return [{ name, errorCode, doc: docAbove(lines, index), fields }];
  });
}

function readSqlErrors() {
  const sql = sqlFiles.map((name) => readSource(`src/db/migrations/${name}.sql`)).join("\n");
  const raised = sql.matchAll(/raise exception '((?:[^']|'')+)'[^;]*?errcode = '(\w{5})'/g);
  const errors = [...raised].map(([, message, state]) => ({
    state,
    message: message.replaceAll("''", "'").replaceAll("%", "…"),
  }));
  return errors.sort((a, b) => b.state.localeCompare(a.state));
}

function readEmbeddedCodes() {
  const lines = readSource("packages/embedded/src/embedded-error.ts").split("\n");
  return lines.flatMap((line, index) => {
    const [, name] = /^\s*\| "(\w+)"/.exec(line) ?? [];
    return name === undefined ? [] : [{ name, doc: docAbove(lines, index) }];
  });
}
