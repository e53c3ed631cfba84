import type { ErrorDetails, ErrorsPage } from "../../contract.ts";
import type { Page } from "../context.ts";
import { countJobs } from "../count-jobs.ts";
import { readSpan } from "../queries.ts";
import { Fields } from "../read-fields.ts";
import { Refusal } from "../refusal.ts";
import { moment, toErrorGroup, toHistoryRow } from "../rows.ts";
import { spanSteps } from "../span-steps.ts";

/** Of each of a hundred groups. */
export const lookAtFailures = 250;
/** Of one group alone. */
const lookAtSame = 2_000;
const steps = 24;

export const errors: Page<ErrorsPage> = async ({ cache, utils }, { query }) => {
  const fields = new Fields(query, ["task", "span"]);
  const span = readSpan(fields, "1d");
  const task = fields.optionalText("task");
  const groups = await cache.get(`errors ${span} ${task ?? ""}`, 2_000, () => {
    const since = new Date(Date.now() - spanSteps[span].sinceMs);
    return utils.listErrors({ task, since, steps, limit: 100, lookAt: lookAtFailures });
  });
  return {
    now: moment(new Date()),
    span,
    groups: groups.map((group) => toErrorGroup(group, lookAtFailures)),
    lookedAt: groups.some(({ count }) => count >= lookAtFailures) ? lookAtFailures : null,
  };
};

export const error: Page<ErrorDetails> = async ({ cache, utils }, { query }) => {
  const fields = new Fields(query, ["fingerprint", "span"]);
  const fingerprint = fields.text("fingerprint", 200);
  const span = readSpan(fields, "30d");
  return cache.get(`error ${span} ${fingerprint}`, 2_000, async () => {
    const since = new Date(Date.now() - spanSteps[span].sinceMs);
    const [group] = await utils.listErrors({ fingerprint, since, steps, limit: 1, lookAt: lookAtSame });
    if (!group) throw new Refusal("not-found", "There is no such error, or it was too long ago.");
    const { entries } = await utils.listHistory({ fingerprint }, { limit: 50 });
    const kept = await utils.getJobHistory(group.example_id);
    const { found, isAll } = await countJobs({ utils }, { error: fingerprint });
    return {
      now: moment(new Date()),
      group: toErrorGroup(group, lookAtSame),
      error: group.example_error.slice(0, 50_000),
      stack: kept.findLast((attempt) => attempt.fingerprint === fingerprint)?.stack ?? null,
      attempts: entries.map(toHistoryRow),
      present: { count: found, isMore: !isAll },
    };
  });
};
