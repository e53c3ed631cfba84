import type { Task } from "graphile-worker";
import "../payloads.js";
import { leaveEffect } from "../effects.js";

const sendEmail: Task<"send-email"> = async (payload, helpers) => {
  const { to, subject } = payload;
  helpers.logger.info(`To ${to}: ${subject}`, { to });
  await leaveEffect(payload, helpers, {
    key: helpers.job.key,
    maxAttempts: helpers.job.max_attempts,
    priority: helpers.job.priority,
    flags: helpers.job.flags,
    isAborted: helpers.abortSignal?.aborted,
    queue: await helpers.getQueueName(),
  });
};

export default sendEmail;
