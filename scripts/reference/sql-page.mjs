import { code, page, table } from "./markdown.mjs";
import { readSource } from "./source.mjs";

/** The schema says what there is; these say what it is for. A function without a description, or a description without a function, fails. */
const texts = {
  add_job: `Adds one job and returns its row. Everything but the name has a default: an empty object as payload, no queue, now, 25
attempts, no key, priority 0, no flags. \`job_key_mode\` is \`replace\`, \`preserve_run_at\` or \`unsafe_dedupe\`: see
[jobs and keys](../jobs-and-keys.md#keys).

\`\`\`sql
select graphile_worker.add_job(
  'hello', '{"name":"Ada"}', queue_name => 'greetings', run_at => now() + interval '1 hour'
);
\`\`\``,
  add_jobs: `Adds many jobs at once and returns their rows in the order of the specs. The whole call has one key mode: \`replace\`, or
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
  add_debounced_job: `Adds a job that runs \`delay\` after the last of several adds with the same key, with the last payload, but no later than
\`max_wait\` after the first. Returns the row of the job that waits. See [debounce, throttle, singleton](../jobs-and-keys.md#debounce-throttle-singleton).

\`\`\`sql
select graphile_worker.add_debounced_job(
  'save-draft', '{"id": 1}', key => 'draft:1', delay => '5 seconds', max_wait => '1 minute'
);
\`\`\``,
  add_throttled_job: `Adds a job unless one of the key was added within the last \`period\`, whatever became of it. Returns its row, or null if nothing was
added.

\`\`\`sql
select id
from graphile_worker.add_throttled_job('hook', '{"id": 1}', key => 'hook:1', period => '1 day');
\`\`\``,
  add_singleton_job: `Adds a job so that at most one with its key waits and at most one runs. \`on_conflict\` is \`skip\`, \`replace\` or \`cancelRunning\`. Returns the
row of the job that waits, or null if nothing was added.

\`\`\`sql
select id from graphile_worker.add_singleton_job('sync', '{"id": 1}', key => 'account:1');
\`\`\``,
  remove_job: `Removes the job with this key and returns its row, or null if there is none. A running job finishes, but is
not retried.

\`\`\`sql
select graphile_worker.remove_job('welcome:ada');
\`\`\``,
  cancel_jobs: `Cancels jobs and returns their rows as they were. Waiting jobs are deleted. The signal of running ones (their \`locked_at\` is set) fires; they
count as done if they still succeed, and as cancelled otherwise. A cancelled job never runs again. Permanently failed jobs are
not changed. See [control of a job](../control.md#cancel).

\`\`\`sql
select id, locked_at from graphile_worker.cancel_jobs(array[17, 18], reason => 'customer left');
\`\`\``,
  complete_jobs: `Deletes jobs as if they had succeeded. Running jobs are not changed. Returns the deleted rows.`,
  permanently_fail_jobs: `Marks jobs as permanently failed: they are kept but never run. Running jobs are not changed.`,
  reschedule_jobs: `Changes when, how urgently and how often jobs are tried; null keeps a value. Running jobs are not changed.

\`\`\`sql
-- Retry every permanently failed job.
select count(*) from graphile_worker.reschedule_jobs(
  array(select id from graphile_worker.jobs where attempts >= max_attempts),
  run_at => now(),
  attempts => 0
);
\`\`\``,
  force_unlock_workers: `Unlocks everything that these workers hold. Use it only for workers that are certainly dead: the jobs of a live one would
run twice.`,
  pause_work: `Pauses a \`task\`, a \`queue\`, a \`worker\`, a \`cron\` entry or, with the kind \`all\` and no name, everything. Running jobs finish. Without \`until\` the
pause lasts until it is resumed; pausing again replaces \`until\`, \`reason\` and \`paused_by\`. See [pausing](../pausing.md).

\`\`\`sql
select graphile_worker.pause_work('queue', 'account:17', reason => 'import is running');
\`\`\``,
  resume_work: `Ends a pause; false if there was none. Other pauses stay, even if they concern the same jobs.

\`\`\`sql
select graphile_worker.resume_work('queue', 'account:17');
\`\`\``,
  list_pauses: `What is paused now, oldest first.`,
  set_limit: `Changes a limit of a task or a shared limit, for all workers and until it is cleared; with \`key\`, the limit of one key. A task that has no such
limit gets one. See [limits and fairness](../limits.md).

\`\`\`sql
select graphile_worker.set_limit('sync', places => 5);
\`\`\``,
  clear_limit: `Takes back what \`set_limit\` changed; false if there was nothing.

\`\`\`sql
select graphile_worker.clear_limit('sync');
\`\`\``,
  worker_heartbeat: `A heartbeat of a worker: registers it, or renews its registration. Workers call this themselves.`,
  worker_deregister: `Removes a worker's registration. Workers call this themselves when they stop.`,
  list_stale_workers: `Workers with [crash recovery](../crash-recovery.md) whose last heartbeat is older than this.`,
  list_orphan_locked_workers: `Ids in locks that belong to no registered worker.`,
  recover_dead_worker_jobs: `Recovers the jobs of these workers, to run after the delay; returns their number.`,
  delete_stale_workers: `Deletes these workers' registrations. Their jobs stay locked: recover them first.`,
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
      `Returns ${code(returns)}.`,
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

const rights = `The tables have row level security without policies, so only their owner (the role that ran the migrations) can work with them. [Least privilege](../least-privilege.md) has scripts for workers, viewers and producers.
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
