import type { JobFilter, ListedJob } from "../../../index.ts";
import type { CountAnswer, FindAnswer, JobsPage } from "../../contract.ts";
import type { DashboardContext, Page } from "../context.ts";
import { countJobs } from "../count-jobs.ts";
import { readJobFilter, readJobQuery } from "../queries.ts";
import { Fields } from "../read-fields.ts";
import { bounded, moment, toJobRow } from "../rows.ts";
import { ScanPace } from "../scan-pace.ts";
import { readFigures } from "../shared-reads.ts";
import { countAtMost } from "./task-rows.ts";

export const jobs: Page<JobsPage> = async (context, { query }) => {
  const { filter, page } = readJobQuery(query, context.redact);
  const { found, next, lookedAt } = await context.cache.get(`jobs ${JSON.stringify(query)}`, 900, () =>
    findJobs(context, filter, page.limit, page.after),
  );
  return { now: moment(new Date()), jobs: found.map(toJobRow), next, lookedAt };
};

interface Found {
  readonly found: ListedJob[];
  readonly next: string | null;
  readonly lookedAt: number;
}

/** Looks at as many jobs as a moment allows, in steps; whoever wants more asks again with `next`. */
async function findJobs(
  { utils }: DashboardContext,
  filter: JobFilter,
  limit: number,
  after: string | undefined,
): Promise<Found> {
  const pace = new ScanPace(filter);
  const found: ListedJob[] = [];
  let next: string | null = after ?? null;
  let lookedAt = 0;
  do {
    // A key is looked up, however many jobs there are.
    const lookAt = filter.key === undefined ? pace.step : undefined;
    const page = await pace.time(() => utils.listJobs(filter, { limit: limit - found.length, after: next, lookAt }));
    found.push(...page.jobs);
    next = page.next;
    lookedAt += lookAt ?? 1;
  } while (next !== null && found.length < limit && pace.hasTime);
  return { found, next, lookedAt };
}

/** How many jobs match, up to a bound in number and in time. */
export const count: Page<CountAnswer> = async ({ cache, utils, redact }, { query }) => {
  const filter = readJobFilter(query, redact);
  return cache.get(`count ${JSON.stringify(query)}`, 2_000, async () => {
    const { found, isAll } = await countJobs({ utils }, filter, countAtMost);
    return isAll && found < countAtMost
      ? { count: found, isMore: false }
      : { ...bounded(found, countAtMost), isMore: true };
  });
};

/** What a person who types a few characters may mean. */
export const find: Page<FindAnswer> = async (context, { query }) => {
  const fields = new Fields(query, ["q"]);
  const text = fields.text("q", 200);
  const { utils } = context;
  const byKey = (await utils.listJobs({ key: text }, { limit: 5 })).jobs;
  const byId = /^#?\d{1,18}$/.test(text)
    ? (await utils.listJobs({ upTo: text.replace("#", "") }, { limit: 1 })).jobs
    : [];
  const wanted = text.toLowerCase();
  const { tasks } = await readFigures(context);
  const queues = await context.cache.get(`find queues ${text}`, 2_000, () =>
    utils.listQueues({ search: text, limit: 10, lookAt: countAtMost }),
  );
  return {
    jobs: [...byId.filter(({ id }) => id === text.replace("#", "")), ...byKey].map(toJobRow),
    tasks: tasks
      .map(({ task }) => task)
      .filter((task) => task.toLowerCase().includes(wanted))
      .slice(0, 10),
    queues: queues.map(({ queue_name }) => queue_name),
  };
};
