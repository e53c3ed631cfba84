import type { Task } from "graphile-worker";
import "../payloads.js";
import { leaveEffect } from "../effects.js";

/** Each item ends on its own; the second visit of anybody is refused once. */
const countVisits: Task<"count-visits"> = async (visits, helpers) => {
  await leaveEffect(visits, helpers);
  return visits.map(async ({ user, visit }) => {
    if (visit === 2 && helpers.job.attempts === 1) throw new Error(`visit ${visit} of ${user} is refused`);
  });
};

export default countVisits;
