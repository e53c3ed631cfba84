import { shortPatienceMs, statement } from "../statement.ts";
import type { HistoryRow } from "./history.ts";
import { stateOfJob } from "./job-state.ts";

/** A job that was added while another one ran, by its task. */
export interface JobLink {
  readonly parentId: string;
  readonly childId: string;
  /** How long it is kept. */
  readonly days: number;
}

/** Keeps which jobs added which. */
export const linkJobs = statement<{ links: readonly JobLink[] }, object>({
  name: "link_jobs",
  patienceMs: shortPatienceMs,
  values: ({ links }) => [
    `{${links.map(({ parentId }) => parentId).join(",")}}`,
    `{${links.map(({ childId }) => childId).join(",")}}`,
    `{${links.map(({ days }) => days).join(",")}}`,
  ],
  text: "select from graphile_worker._hathi_link_jobs($1::bigint[], $2::bigint[], $3::integer[])",
});

export interface LinkedJobRow {
  /** True: it was added by the job that was asked about; false: it added that job. */
  readonly is_child: boolean;
  readonly id: string;
  /** Null if nothing is known of it any more. */
  readonly task_identifier: string | null;
  readonly state: "waiting" | "scheduled" | "running" | "dead" | "finished" | null;
  /** How its last attempt that is kept ended, if it is gone. */
  readonly outcome: HistoryRow["outcome"] | null;
}

/** What added a job and what it has added, with what became of them. */
export const findLinks = statement<{ id: string; limit: number }, LinkedJobRow>({
  name: "find_links",
  values: ({ id, limit }) => [id, limit],
  text: `
    with linked as materialized (
      select link.is_child, link.job_id from graphile_worker._hathi_find_links($1::bigint, $2::integer) as link
    ), ended as (
      select distinct on (entry.job_id) entry.job_id, entry.task_identifier, entry.outcome
      from graphile_worker._hathi_find_history(array(select linked.job_id from linked)) as entry
      order by entry.job_id, entry.settled_at desc, entry.entry desc
    )
    select linked.is_child, linked.job_id::text as id, coalesce(task.identifier, ended.task_identifier) as task_identifier,
      case when job.id is not null then ${stateOfJob} when ended.job_id is not null then 'finished' end as state,
      case when job.id is null then ended.outcome end as outcome
    from linked
    left join graphile_worker._private_jobs as job on job.id = linked.job_id
    left join graphile_worker._private_tasks as task on task.id = job.task_id
    left join ended on ended.job_id = linked.job_id
    order by linked.is_child, linked.job_id`,
});
