import { code, page, table } from "./markdown.mjs";
import { readSource } from "./source.mjs";

/** The schema says what there is; these say what it is for. A function without a text, or a text without one, fails. */
const texts = {
  add_job: `Adds one job and gives its row. Everything but the name has a default: an empty object as payload, no queue, now, 25
attempts, no key, priority 0, no flags. \`job_key_mode\` is \`replace\`, \`preserve_run_at\` or \`unsafe_dedupe\`: see
[jobs and keys](../jobs-and-keys.md#keys).

\`\`\`sql
select graphile_worker.add_job(
  'hello', '{"name":"Ada"}', queue_name => 'greetings', run_at => now() + interval '1 hour'
);
\`\`\``,
  add_jobs: `Adds many jobs in one go and gives their rows in the order of the specs. The whole call has one key mode: \`replace\`, or
\`preserve_run_at\` if the second argument is true.

\`\`\`sql
select * from graphile_worker.add_jobs(array(
  select json_populate_record(null::graphile_worker.job_spec, json_build_object(
    'identifier', 'hello',
    'payload', json_build_object('name', name)
  ))
  from unnest(array['Ada', 'Grace']) as name
));
\`\`\``,
  remove_job: `Removes the job with this key and gives its row, or null if there is none. One that runs at the moment may finish, but does
not run again.

\`\`\`sql
select graphile_worker.remove_job('welcome:ada');
\`\`\``,
  complete_jobs: `Deletes jobs as if they had succeeded. Jobs that run are left alone; back come the rows that are gone.`,
  permanently_fail_jobs: `Uses up the attempts of jobs, so that they are kept but never run. Jobs that run are left alone.`,
  reschedule_jobs: `Changes when, how urgently and how often jobs are tried; null leaves a value as it is. Jobs that run are left alone.

\`\`\`sql
-- Try everything again that has failed for good.
select count(*) from graphile_worker.reschedule_jobs(
  array(select id from graphile_worker.jobs where attempts >= max_attempts),
  run_at => now(),
  attempts => 0
);
\`\`\``,
  force_unlock_workers: `Frees everything that these workers hold. Only for workers that are certainly dead: a living one would go on, and
its jobs would run twice.`,
  worker_heartbeat: `A sign of life of a worker: registers it, or says that it still lives. Workers do this themselves.`,
  worker_deregister: `Takes a worker off the register; it does so itself when it stops.`,
  list_stale_workers: `Workers with [crash recovery](../crash-recovery.md) whose last sign of life is older than this.`,
  list_orphan_locked_workers: `Ids that locks carry but no registered worker has.`,
  recover_dead_worker_jobs: `Gives the jobs of these workers back, to run after the delay; says how many there were.`,
  delete_stale_workers: `Forgets these workers. Their jobs stay locked: recover them first.`,
};

export function makeSqlPage() {
  const schema = readSource("src/db/schema.sql");
  const functions = readFunctions(schema);
  const names = functions.map(({ name }) => name);
  const missing = [
    ...names.filter((name) => !texts[name]),
    ...Object.keys(texts).filter((name) => !names.includes(name)),
  ];
  if (missing.length > 0) throw new Error(`Functions and their texts do not match: ${missing.join(", ")}.`);
  const ordered = Object.keys(texts).map((name) => functions.find((each) => each.name === name));
  return page(
    "# SQL",
    intro,
    ...ordered.flatMap(({ name, args, returns }) => [
      `## ${name}`,
      ...(args.length > 0 ? [table(["argument", "type", "default"], args)] : []),
      `Gives ${code(returns)}.`,
      texts[name],
    ]),
    "## The view jobs",
    viewText,
    `Its columns: ${readView(schema).map(code).join(", ")}.`,
    "## The type job_spec",
    "One job for `add_jobs`. What is null has the default that `add_job` has.",
    table(["field", "type"], readType(schema, "job_spec")),
    "## Locks and rights",
    rights,
  );
}

const intro = `These functions are the same for every client: psql, a trigger, another language. They live in the schema \`graphile_worker\`
(or the one you chose) and are called like any other function. What you add becomes visible to workers when your transaction
commits, and never if it is rolled back.

A trigger, for instance:

\`\`\`sql
create table users (id bigint generated always as identity primary key, name text not null);

create function greet_new_user() returns trigger language plpgsql as $$
begin
  perform graphile_worker.add_job('hello', json_build_object('name', new.name));
  return new;
end;
$$;

create trigger greet after insert on users for each row execute function greet_new_user();

insert into users (name) values ('Ada');
\`\`\``;

const viewText = `What you may read: one row per job that waits, runs or is dead. It has no payload; that is in
\`_private_jobs\`, which is not meant to be read by your code.

\`\`\`sql
select id, task_identifier, attempts, last_error
from graphile_worker.jobs
where attempts = max_attempts
order by id;
\`\`\``;

const rights = `The tables have row level security without policies, so only their owner (whoever ran the migrations) can work with them.
To let another role add jobs and nothing else, give it a function of its own that runs with the owner's rights:

\`\`\`sql
create function add_greeting(name text) returns void
language sql security definer set search_path = pg_catalog as $$
  select graphile_worker.add_job('hello', json_build_object('name', name));
$$;
revoke all on function add_greeting(text) from public;
\`\`\``;

function readFunctions(schema) {
  const found = schema.matchAll(/^create function graphile_worker\.([a-z]\w*)\((.*)\)\n RETURNS (.*)$/gm);
  return [...found].map(([, name, args, returns]) => ({ name, args: splitArguments(args), returns: tidy(returns) }));
}

function splitArguments(text) {
  if (text === "") return [];
  return text.split(", ").map((argument) => {
    const [declared, byDefault = ""] = argument.split(" DEFAULT ");
    const [name, ...type] = declared.split(" ");
    return [code(name), code(tidy(type.join(" "))), code(byDefault.replace(/::[\w\s[\]]+$/, "").toLowerCase())];
  });
}

function readType(schema, name) {
  const [, body] = new RegExp(`^create type graphile_worker\\.${name} as \\(\\n([\\s\\S]*?)\\n\\);`, "m").exec(schema);
  return body.split(",\n").map((line) => {
    const [field, ...type] = line.trim().split(" ");
    return [code(field), code(tidy(type.join(" ")))];
  });
}

function readView(schema) {
  const [, body] = /^create view graphile_worker\.jobs as\n SELECT ([\s\S]*?)\n\s+FROM/m.exec(schema);
  return body.split(",\n").map((line) =>
    line
      .trim()
      .replace(/^.* AS /, "")
      .replace(/^\w+\./, ""),
  );
}

function tidy(type) {
  return type
    .replaceAll("timestamp with time zone", "timestamptz")
    .replaceAll("graphile_worker.", "")
    .replace("SETOF", "setof")
    .replace("TABLE", "table");
}
