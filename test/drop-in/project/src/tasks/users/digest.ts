import type { Task } from "graphile-worker";
import { leaveEffect } from "../../effects.js";

interface Digest {
  kind: string;
  _cron: { ts: string; backfilled?: boolean };
}

const digest: Task = async (payload, helpers) => {
  const { kind, _cron } = payload as Digest;
  const isMidnight = _cron.ts.endsWith("T00:00:00.000Z");
  await leaveEffect({ kind, isMidnight, backfilled: _cron.backfilled }, helpers, {
    maxAttempts: helpers.job.max_attempts,
    priority: helpers.job.priority,
    queue: await helpers.getQueueName(),
  });
};

export default digest;
