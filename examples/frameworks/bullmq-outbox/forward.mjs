import { defineTask } from "hathi";

/** A task that passes its jobs on to the BullMQ queues named in them. BullMQ takes an id that it knows already for done. */
export function makeForward(queueByName) {
  return defineTask({
    identifier: "forward-to-bullmq",
    run: async ({ queue: name, job, data }, { job: { id } }) => {
      const queue = queueByName.get(name);
      if (!queue) throw new Error(`There is no BullMQ queue called '${name}'.`);
      await queue.add(job, data, { jobId: `outbox-${id}` });
    },
  });
}
