import { payloadOf, priorityOf, runAtOf } from "./graphile-tables.mjs";

const noNamedQueues = "pg-boss has no serial queues of graphile-worker's kind";

export const pgBoss = {
  name: "pg-boss",
  family: "pg-boss",
  package: "pg-boss",
  title: "pg-boss, tuned",
  schema: "pgboss",
  worker: "pg-boss.mjs",
  claims: /skip locked/i,
  settings: () => ({ batchSize: 1000, localConcurrency: 2, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 }),
  lacks: { s6: noNamedQueues, s12: "pg-boss settles a batch as a whole: nothing waits in a buffer" },

  async fill(place, plan) {
    const { count, task = "job", tasks = 1, isDead = false } = plan;
    await place.query(
      `insert into pgboss.job (name, data, priority, start_after, state, retry_delay, policy, group_id)
       select ${tasks > 1 ? `'${task}_' || i % ${tasks}` : `'${task}'`}, ${payloadOf(plan)}, -(${priorityOf(plan)}), ${runAtOf(plan)},
         '${isDead ? "failed" : "created"}', 600, 'standard', ${plan.keys ? `(i % ${plan.keys})::text` : "null"}
       from generate_series(0, ${count - 1}) as i`,
    );
  },

  /** It keeps rows that are completed; they count as gone. */
  async countLeft(place, { end }) {
    const { rows } = await place.query(
      `select count(*)::int as count from pgboss.job
       where name like 'job%' and start_after <= now() and state in (${end === "gone" ? "'created', 'retry', 'active'" : "'created', 'active'"})`,
    );
    return rows[0].count;
  },

  async churn(place, count) {
    await this.fill(place, { count, priority: -1 });
    await place.query("update pgboss.job set state = 'active'");
    await place.query("update pgboss.job set state = 'completed'");
  },
};
