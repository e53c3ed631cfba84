import { expect, test } from "vitest";
import type { Emit } from "../../../src/events.ts";
import type { Job } from "../../../src/job.ts";
import { JobCancelledError } from "../../../src/job-errors.ts";
import { Cancels } from "../../../src/worker/run/cancels.ts";
import { JobRun } from "../../../src/worker/run/job-run.ts";
import { RunningJobs } from "../../../src/worker/run/running-jobs.ts";
import type { Slot } from "../../../src/worker/run/slot.ts";

const error = new JobCancelledError("enough", "ada");
const job = (id: string): Job => ({ id }) as Job;
const runOf = (each: Job): JobRun =>
  new JobRun(each, () => undefined, {} as Slot, undefined, {} as JobRun["stopSwitch"], 0);

function makeScene(
  runs: readonly JobRun[],
  waiting: Job[],
): { cancels: Cancels; running: RunningJobs; said: string[] } {
  const said: string[] = [];
  const emit = ((name: string) => void said.push(name)) as unknown as Emit;
  const running = new RunningJobs(runs.map((run) => ({ run }) as Slot));
  return { cancels: new Cancels({ emit, running, notStarted: () => waiting }), running, said };
}

test("a running job gets its abort signal, once", () => {
  const run = runOf(job("1"));
  const { cancels, said } = makeScene([run], []);
  cancels.cancel("1", error);
  cancels.cancel("1", new JobCancelledError("again", "bob"));
  expect([run.cancelled, run.signal.reason, said]).toEqual([error, error, ["job:cancelling"]]);
  expect(cancels.candidates()).toEqual([]);
});

test("a job that waits does not start; what is no longer held is forgotten", () => {
  const waiting = [job("1"), job("2")];
  const { cancels } = makeScene([], waiting);
  cancels.cancel("1", error);
  cancels.cancel("3", error);
  expect(cancels.candidates()).toEqual(["2"]);
  const [first, second] = [runOf(job("1")), runOf(job("2"))];
  expect([cancels.stops(first), cancels.stops(second), first.cancelled, second.cancelled]).toEqual([
    true,
    false,
    error,
    undefined,
  ]);
  // A later claim of the same job is another run.
  expect(cancels.stops(runOf(job("1")))).toBe(false);
  cancels.cancel("2", error);
  waiting.splice(0, 2, job("4"));
  cancels.cancel("4", error);
  expect(cancels.stops(second)).toBe(false);
});

test("a run whose outcome is decided can be cancelled only while it overruns", () => {
  const [lost, overrunning] = [runOf(job("1")), runOf(job("2"))];
  lost.isAbandoned = true;
  overrunning.isAbandoned = true;
  overrunning.isOverrunning = true;
  const { cancels, running } = makeScene([lost, overrunning], []);
  expect(cancels.candidates()).toEqual(["2"]);
  expect(running.jobs()).toEqual([]);
});
