/** Jobs straight into graphile-worker's tables, which are ours as well: a million rows through the API would take minutes. */
export async function fillGraphile(place, plan) {
  const { count, queues = 0, isDead = false, task = "job", tasks = 1 } = plan;
  if (queues > 0) {
    await place.query(
      `insert into graphile_worker._private_job_queues (queue_name)
       select 'queue_' || i from generate_series(0, ${queues - 1}) as i on conflict do nothing`,
    );
  }
  await place.query(
    `insert into graphile_worker._private_jobs (task_id, job_queue_id, payload, priority, run_at, attempts)
     select task.id, queue.id, ${payloadOf(plan)}, ${priorityOf(plan)}, ${runAtOf(plan)}, ${isDead ? 25 : 0}
     from generate_series(0, ${count - 1}) as i
     join graphile_worker._private_tasks as task on task.identifier = ${tasks > 1 ? `'${task}_' || i % ${tasks}` : `'${task}'`}
     left join graphile_worker._private_job_queues as queue on ${queueOf(plan)}
     order by i`,
  );
}

function queueOf({ queues = 0 }) {
  return queues > 0 ? `queue.queue_name = 'queue_' || i % ${queues}` : "false";
}

/** SQL for the payload of job `i`, as a fill plan wants it. */
export function payloadOf({ payloadBytes, sleeps, keys }) {
  if (payloadBytes) return `json_build_object('text', repeat('x', ${payloadBytes}))`;
  if (sleeps) return `json_build_object('ms', (array[${sleeps}])[1 + i % ${sleeps.length}])`;
  if (keys) return `json_build_object('i', i, 'k', i % ${keys})`;
  return "json_build_object('i', i)";
}

export function priorityOf({ priority = 0, priorities = 1, tasks = 1 }) {
  return `${priority} + (i / ${tasks}) % ${priorities}`;
}

export function runAtOf({ inFuture = false }) {
  return inFuture
    ? "now() + interval '1 day' + i * interval '1 millisecond'"
    : "now() - interval '1 hour' + i * interval '1 microsecond'";
}

const leftWhere = {
  gone: "true",
  "failed once": "attempts = 0 or locked_at is not null",
};

/** `filler` rows were put in first and are not work to be done. */
export async function countLeftGraphile(place, { end, filler = 0 }) {
  const { rows } = await place.query(
    `select count(*)::int as count from graphile_worker._private_jobs where id > ${filler} and (${leftWhere[end]})`,
  );
  return rows[0].count;
}

/** Two queues as another worker would hold them. */
export async function holdQueuesGraphile(place) {
  await place.query(
    `update graphile_worker._private_job_queues set locked_at = now(), locked_by = 'somebody else'
     where queue_name in ('queue_0', 'queue_1')`,
  );
}

/** Rows that lived and died since the oldest transaction began, ahead of everything that is due. */
export async function churnGraphile(place, count) {
  await fillGraphile(place, { count, priority: -1 });
  await place.query("update graphile_worker._private_jobs set attempts = 1, locked_at = now(), locked_by = 'churn'");
  await place.query("delete from graphile_worker._private_jobs");
}

/** What a slow worker has not come to. */
export async function removeWaitingGraphile(place) {
  await place.query("delete from graphile_worker._private_jobs where locked_at is null");
}
