import { code, page, table } from "./markdown.mjs";
import { readInterface } from "./source.mjs";

const path = "src/events.ts";
/** What the shorthands of the source stand for. */
const shorthands = [
  "PoolEvent",
  "ShutdownEvent",
  "WorkerEvent",
  "JobEvent",
  "JobErrorEvent",
  "LocalQueueEvent",
  "CronEvent",
];
const parents = { ShutdownEvent: "PoolEvent", JobEvent: "WorkerEvent", JobErrorEvent: "JobEvent" };
const sections = {
  job: "Jobs",
  pool: "Pools",
  worker: "Workers (slots)",
  cron: "Recurring jobs",
  claim: "Claims",
  settle: "Settles",
  localQueue: "Local queue",
  resetLocked: "Stale locks",
  "": "The process",
};

export function makeEventsPage() {
  const events = readInterface(path, "HathiEventMap").members;
  const groupOf = (name) => (name.includes(":") ? name.split(":")[0] : "");
  const unknown = events.find(({ name }) => !(groupOf(name) in sections));
  if (unknown) throw new Error(`The event '${unknown.name}' belongs to no section of the page.`);
  return page(
    "# Events",
    intro,
    ...Object.entries(sections).flatMap(([group, title]) => [
      `## ${title}`,
      table(
        ["event", "when, and its fields"],
        events
          .filter(({ name }) => groupOf(name) === group)
          .map(({ name, type, doc }) => [
            code(name),
            [described(name, doc), fieldsOf(type).map(code).join(", ")].filter(Boolean).join("<br>"),
          ]),
      ),
    ]),
  );
}

const intro = `Events are for watching: metrics, logs, tests. Nothing in Hathi depends on one, and a listener that throws is reported and
changes nothing. To decide something, use a [hook](../hooks-and-plugins.md).

\`\`\`ts
import { run } from "hathi";

const runner = await run({ taskList: { hello: () => console.log("Hello") } });
runner.events.on("job:complete", ({ job, error, durationMs }) => {
  console.log(job.task_identifier, error ? "failed" : "done", durationMs);
});
\`\`\`

\`runner.events\` is Node's \`EventEmitter\`. To receive events from the very start, create one and pass it as the option \`events\`. Every
event carries \`ctx\` as well, the context that plugins get. \`job:success\` and \`job:error\` are emitted before the outcome is written,
\`job:complete\` after it.`;

function described(name, doc) {
  if (doc === "") throw new Error(`The event '${name}' has no doc comment.`);
  return doc;
}

/** The names that a payload type has. */
function fieldsOf(type) {
  const named = shorthands.filter((name) => new RegExp(`\\b${name}\\b`).test(type)).flatMap(inherited);
  const own = [...type.matchAll(/[{;]\s*(\w+)\??:/g)].map(([, name]) => name);
  return [...new Set([...named, ...own])];
}

function inherited(name) {
  const members = readInterface(path, name).members.filter(({ doc }) => !doc.includes("@deprecated"));
  return [...(parents[name] ? inherited(parents[name]) : []), ...members.map((member) => member.name)];
}
