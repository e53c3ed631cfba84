import { addJobAdhoc, quickAddJob, type TaskSpec, type WorkerUtils } from "graphile-worker";
import "./payloads.js";
import { connectionString, pool, shape } from "./surroundings.js";

export async function addAll({ addJob, addJobs }: WorkerUtils): Promise<object[]> {
  const spec: TaskSpec = {
    jobKey: "email",
    queueName: "emails",
    maxAttempts: 5,
    priority: -3,
    flags: ["mail", "slow"],
  };
  const first = await addJob("send-email", { to: "ada", subject: "One" }, spec);
  const second = await addJob("send-email", { to: "ada", subject: "Two" }, { ...spec, jobKeyMode: "preserve_run_at" });
  const third = await addJob(
    "send-email",
    { to: "ada", subject: "Three" },
    { jobKey: "email", jobKeyMode: "unsafe_dedupe" },
  );
  const many = await addJobs([
    { identifier: "flaky", payload: { failures: 0 } },
    { identifier: "flaky", payload: { failures: 1 }, maxAttempts: 1, jobKey: "never" },
    { identifier: "flaky", payload: { failures: 1 }, jobKey: "later" },
  ]);
  const adhoc = await addJobAdhoc(
    { connectionString },
    "convert",
    { pages: [1, 2] },
    { jobKey: "good", maxAttempts: 2 },
  );
  const quick = await quickAddJob({ pgPool: pool }, "convert", null, { jobKey: "broken", maxAttempts: 1 });
  const note = await addJob("note", { from: "main" }, { runAt: new Date(0) });
  await pool.query("insert into app.users (email) values ('ada@example.com'), ('bob@example.com')");
  for (let visits = 1; visits <= 3; visits++)
    await pool.query("update app.users set visits = $1 where id = 1", [visits]);
  // The original gives the rows of addJobs in no particular order.
  const sorted = [...many].sort((one, other) => (one.key ?? "").localeCompare(other.key ?? ""));
  return [first, second, third, ...sorted, adhoc, quick, note].map(shape);
}
