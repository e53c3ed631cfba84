import { expect, test } from "vitest";
import { sharedDatabase } from "../support/shared-database.ts";

const database = sharedDatabase();

test.each([
  ["add_job('greet', priority => 32768)", "Job priority must be between -32768 and 32767, got 32768."],
  ["add_job('greet', priority => -32769)", "Job priority must be between -32768 and 32767, got -32769."],
  ["add_job('greet', max_attempts => 32768)", "Job maximum attempts must be at most 32767, got 32768."],
  ["reschedule_jobs('{1}', priority => 40000)", "Job priority must be between -32768 and 32767, got 40000."],
  ["reschedule_jobs('{1}', max_attempts => 40000)", "Job maximum attempts must be at most 32767, got 40000."],
  ["reschedule_jobs('{1}', max_attempts => 0)", "Job maximum attempts must be at least 1, got 0."],
  ["add_job('greet', flags => array['a', null])", "Job flags must not contain null."],
  ["add_job('greet', job_key => 'k', flags => array[null])", "Job flags must not contain null."],
  [
    "add_jobs(array[row('greet', null, null, null, null, null, null, array[null])::graphile_worker.job_spec])",
    "Job flags must not contain null.",
  ],
  [
    "add_jobs(array[row('greet', null, null, null, null, 'k', null, array['a', null])::graphile_worker.job_spec])",
    "Job flags must not contain null.",
  ],
])("%s is refused with a message that names the value", async (call, message) => {
  await expect(database().query(`select * from graphile_worker.${call}`)).rejects.toThrow(message);
  expect(await database().jobs()).toEqual([]);
});

test("the smallest and the largest priority are accepted", async () => {
  await database().query("select graphile_worker.add_job('greet', priority => -32768, max_attempts => 32767)");
  await database().query("select graphile_worker.add_job('greet', priority => 32767, flags => array['a', 'b'])");
  const jobs = await database().jobs();
  expect(jobs.map(({ priority, flags }) => [priority, flags])).toEqual([
    [-32768, null],
    [32767, { a: true, b: true }],
  ]);
});
