import type { QueuesPage } from "../../contract.ts";
import type { Page } from "../context.ts";
import { Fields } from "../read-fields.ts";
import { moment, toPause } from "../rows.ts";
import { readRunning } from "../shared-reads.ts";
import { countAtMost } from "./task-rows.ts";

export const queues: Page<QueuesPage> = async (context, { query }) => {
  const fields = new Fields(query, ["search", "limit"]);
  const search = fields.optionalText("search", 200);
  const limit = fields.optionalInteger("limit", 1, 500) ?? 100;
  const rows = await context.cache.get(`queues ${limit} ${search ?? ""}`, 1_000, () =>
    context.utils.listQueues({ search, limit: limit + 1, lookAt: countAtMost }),
  );
  const running = rows.some(({ locked_by }) => locked_by !== null) ? await readRunning(context) : [];
  const counted = rows.reduce((total, row) => total + row.waiting + row.scheduled, 0);
  const isMore = counted >= countAtMost;
  return {
    now: moment(new Date()),
    queues: rows.slice(0, limit).map((row) => {
      const holder = running.find(({ queue_name }) => queue_name === row.queue_name);
      return {
        name: row.queue_name,
        waiting: { count: row.waiting, isMore },
        scheduled: { count: row.scheduled, isMore },
        nextRunAt: moment(row.next_run_at),
        heldSince: moment(row.locked_at) ?? moment(holder?.locked_at),
        heldBy: row.locked_by,
        job: holder ? { id: holder.id, task: holder.task_identifier } : null,
        pause: toPause(row.pause),
      };
    }),
    isMore: rows.length > limit,
  };
};
