import type { TaskFigures } from "../db/statements/metrics.ts";
import type { PrometheusText, Sample } from "./prometheus-text.ts";
import type { Rollup } from "./rollup.ts";

const states = ["waiting", "scheduled", "running", "dead"] as const;

/** What one worker has collected about the whole table, the same in every process. */
export function writeRollups(text: PrometheusText, rollups: readonly Rollup[]): void {
  const known = rollups.flatMap((rollup) => (rollup.current ? [{ schema: rollup.schema, ...rollup.current }] : []));
  const ofTasks = (samples: (figures: TaskFigures) => readonly Sample[]): Sample[] =>
    known.flatMap(({ schema, data }) =>
      (data.tasks ?? []).flatMap((figures) =>
        samples(figures).map(({ labels, value }) => ({ labels: { schema, task: figures.task, ...labels }, value })),
      ),
    );
  text.gauge(
    "hathi_jobs",
    "Jobs by state. Of waiting and scheduled ones there may be more if hathi_jobs_capped is 1.",
    ofTasks((figures) => states.map((state) => ({ labels: { state }, value: figures[state] }))),
  );
  text.gauge(
    "hathi_jobs_capped",
    "1 if there are at least as many waiting and scheduled jobs as hathi_jobs says.",
    ofTasks(({ isCapped }) => (isCapped ? [{ value: 1 }] : [])),
  );
  text.gauge(
    "hathi_oldest_runnable_seconds",
    "How long the oldest job that could run has been due.",
    ofTasks(({ oldestSeconds }) => [{ value: oldestSeconds ?? 0 }]),
  );
  const ofLimits = (key: "waiting" | "running"): Sample[] =>
    known.flatMap(({ schema, data }) =>
      (data.limits ?? []).map(({ scope, limit, [key]: value }) => ({ labels: { schema, scope, limit }, value })),
    );
  text.gauge("hathi_limit_waiting", "Jobs that are due, of the tasks that have this limit.", ofLimits("waiting"));
  text.gauge("hathi_limit_running", "Jobs that run, of the tasks that have this limit.", ofLimits("running"));
  const ofTable = (key: "live" | "dead" | "bytes"): Sample[] =>
    known.flatMap(({ schema, data }) => (data.table ? [{ labels: { schema }, value: data.table[key] }] : []));
  text.gauge("hathi_live_tuples", "Rows in the table of jobs, as PostgreSQL estimates.", ofTable("live"));
  text.gauge("hathi_dead_tuples", "Rows in the table of jobs that vacuum has yet to clear away.", ofTable("dead"));
  text.gauge("hathi_table_bytes", "Size of the table of jobs with its indexes.", ofTable("bytes"));
  const ofHolders = (key: "seconds" | "transactions"): Sample[] =>
    known.flatMap(({ schema, data }) =>
      (data.holders ?? []).flatMap(({ kind, name, [key]: value }) =>
        value === null ? [] : [{ labels: { schema, kind, holder: name }, value }],
      ),
    );
  text.gauge("hathi_xmin_age_seconds", "Who holds back vacuum, and for how long.", ofHolders("seconds"));
  text.gauge("hathi_xmin_age_transactions", "The same in transactions begun since.", ofHolders("transactions"));
  text.gauge(
    "hathi_rollup_age_seconds",
    "How old the figures about the whole table are.",
    known.map(({ schema, ageMs }) => ({ labels: { schema }, value: ageMs / 1000 })),
  );
}
