import type { Task } from "graphile-worker";
import "../payloads.js";
import { leaveEffect } from "../effects.js";

const flaky: Task<"flaky"> = async (payload, helpers) => {
  await leaveEffect(payload, helpers);
  if (helpers.job.attempts <= payload.failures) throw new Error(`failure ${helpers.job.attempts}`);
};

export default flaky;
