import { code, page, table } from "./markdown.mjs";
import { docAbove, readSource } from "./source.mjs";

const files = ["src/errors.ts", "src/cron/crontab-error.ts", "src/tasks/task-file-error.ts"];
const sqlFile = "src/db/migrations/000002-sql-api.sql";

export function makeErrorsPage() {
  return page(
    "# Errors",
    intro,
    table(
      ["class", "`code`", "what it means", "fields"],
      files
        .flatMap(readErrors)
        .map(({ name, errorCode, doc, fields }) => [code(name), code(errorCode), doc, fields.map(code).join(", ")]),
    ),
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
    "## What a task throws",
    tasks,
  );
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
e^10, six hours) until its attempts are used up; see [job states](../job-states.md).`;

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
  const raised = readSource(sqlFile).matchAll(/raise exception '((?:[^']|'')+)'[^;]*?errcode = '(\w{5})'/g);
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
