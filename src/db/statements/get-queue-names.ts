import { statement } from "../statement.ts";

export interface QueueNameRow {
  readonly id: number;
  readonly queue_name: string;
}

export const getQueueNames = statement<{ queueIds: readonly number[] }, QueueNameRow>({
  name: "get_queue_names",
  values: ({ queueIds }) => [queueIds],
  text: `
    select id, queue_name from graphile_worker._private_job_queues where id = any ($1::integer[])`,
});
