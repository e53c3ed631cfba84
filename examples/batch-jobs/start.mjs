// One job for many items: they gather under a key, and each succeeds or fails on its own.
import { defineBatchTask, makeWorkerUtils, runOnce } from "hathi";
import { openDatabase } from "../database.mjs";

const database = await openDatabase();
const { connectionString } = database;
const utils = await makeWorkerUtils({ connectionString });

let isCarolReachable = false;
const sendMails = defineBatchTask({
  identifier: "send-mails",
  run: (items) => Promise.allSettled(items.map(({ to }) => sendMail(to))),
});

// The job waits a little, so that more items can join it.
const spec = { jobKey: "mails", jobKeyMode: "preserve_run_at", runAt: new Date(Date.now() + 60_000) };
for (const to of ["ada", "bob", "carol"]) await utils.addBatchJob(sendMails, [{ to }], spec);

const [waiting] = (await utils.listJobs({ task: "send-mails" })).jobs;
console.log(`1 job with ${JSON.stringify((await utils.getJob(waiting.id)).payload)}`);

// Enough gathered: now, not in a minute.
await runNow(waiting.id);
const left = await utils.getJob(waiting.id);
console.log(`Tried again: ${JSON.stringify(left.payload)}, because: ${left.last_error.replaceAll("\n", " ")}`);

isCarolReachable = true;
await runNow(waiting.id);
console.log(`Jobs left: ${(await utils.listJobs({ task: "send-mails" })).jobs.length}`);

await utils.release();
await database.stop();

async function runNow(id) {
  await utils.rescheduleJobs([id], { runAt: new Date() });
  await runOnce({ connectionString, taskList: [sendMails] });
}

async function sendMail(to) {
  if (to === "carol" && !isCarolReachable) throw new Error("carol cannot be reached");
  console.log(`A mail for ${to}`);
}
