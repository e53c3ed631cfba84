import type { JobHelpers } from "graphile-worker";
import "../../payloads.js";
import { leaveEffect } from "../../effects.js";

export default async function welcome(payload: unknown, helpers: JobHelpers): Promise<void> {
  const { id, email } = payload as GraphileWorker.Tasks["users/welcome"];
  const visits = await helpers.withPgClient(async (client) => {
    const { rows } = await client.query<{ visits: number }>("select visits from app.users where id = $1", [id]);
    return rows[0]?.visits;
  });
  await leaveEffect(payload, helpers, { visits, queue: await helpers.getQueueName() });
  await helpers.addJob("send-email", { to: email, subject: "Welcome" }, { priority: 9 });
  await helpers.addJobs([{ identifier: "legacy", payload: { from: "welcome", id } }]);
}
