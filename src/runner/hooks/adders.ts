import { type Adders, acceptDefinitions } from "../../client/accept-definitions.ts";
import { type AddOptions, makeAddJob, makeSharedAddJob } from "../../client/add-job.ts";
import { makeAddJobs } from "../../client/add-jobs.ts";
import type { Database } from "../../db/database.ts";
import { JobSkippedError } from "../../errors.ts";
import type { Lifecycle } from "../../hooks/lifecycle.ts";
import type { Meter } from "../../hooks/meter.ts";
import type { AddJobFunction, AddJobsFunction, Job, TaskName, TaskSpec } from "../../job.ts";
import type { TaskRunSettings } from "../../task-options.ts";
import { traceAddJob, traceAddJobs } from "../../telemetry/trace-adds.ts";
import { monotonicMs } from "../../util/timers.ts";

interface NameAdders {
  readonly addJob: AddJobFunction;
  readonly addJobs: AddJobsFunction;
}

interface AddersOptions {
  readonly settings: AddOptions & {
    readonly metrics?: Meter | undefined;
    readonly taskOptions?: { readonly [name: string]: TaskRunSettings } | undefined;
  };
  readonly lifecycle: Lifecycle;
}

/** The ways in: every job that is added through this library goes past the `beforeJobSchedule` hooks, and is traced. */
export function makeAdders(database: Pick<Database, "run">, { settings, lifecycle }: AddersOptions): Adders {
  const adders = { addJob: makeAddJob(database, settings), addJobs: makeAddJobs(database, settings) };
  return acceptDefinitions(throughHooks(counted(adders, settings.metrics), lifecycle), settings.taskOptions);
}

/** The same, where jobs that are added at the same time may share a statement. */
export function makeSharedAdders(database: Pick<Database, "run">, { settings, lifecycle }: AddersOptions): Adders {
  const adders = { addJob: makeSharedAddJob(database, settings), addJobs: makeAddJobs(database, settings) };
  return acceptDefinitions(throughHooks(counted(adders, settings.metrics), lifecycle), settings.taskOptions);
}

function counted({ addJob, addJobs }: NameAdders, meter: Meter | undefined): NameAdders {
  if (!meter) return { addJob, addJobs };
  const timed = async <Added>(
    add: () => Promise<Added>,
    jobsOf: (added: Added) => readonly Job[],
    tasks: readonly string[],
  ): Promise<Added> => {
    const startedAt = monotonicMs();
    try {
      const added = await add();
      const names = jobsOf(added).flatMap((job) => (job.skipped ? [] : job.task_identifier));
      for (const [task, count] of countEach(names)) meter.added(task, count, monotonicMs() - startedAt);
      return added;
    } catch (error) {
      for (const task of new Set(tasks)) meter.added(task, 0, monotonicMs() - startedAt, error);
      throw error;
    }
  };
  return {
    addJob: (...args) =>
      timed(
        () => addJob(...args),
        (job) => [job],
        [String(args[0])],
      ),
    addJobs: (...args) =>
      timed(
        () => addJobs(...args),
        (jobs) => jobs,
        namesIn(args[0]),
      ),
  };
}

function countEach(names: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}

function namesIn(specs: unknown): string[] {
  return Array.isArray(specs) ? specs.map((spec) => String((spec as { identifier?: unknown } | null)?.identifier)) : [];
}

function throughHooks(adders: NameAdders, lifecycle: Lifecycle): NameAdders {
  const traced: NameAdders = { addJob: traceAddJob(adders.addJob), addJobs: traceAddJobs(adders.addJobs) };
  if (!lifecycle.has("beforeJobSchedule")) return traced;
  return { addJob: askFirst(traced.addJob, lifecycle), addJobs: askForEach(traced.addJobs, lifecycle) };
}

function askFirst(addJob: AddJobFunction, lifecycle: Lifecycle): AddJobFunction {
  return async (identifier, payload, spec) => {
    const wanted = await lifecycle.askSchedule({ identifier, payload, spec: spec ?? {} });
    return await addJob<TaskName>(identifier, wanted.payload, wanted.spec);
  };
}

/** A job that is skipped is left out; one that is refused takes the whole call with it, as one that is wrong does. */
function askForEach(addJobs: AddJobsFunction, lifecycle: Lifecycle): AddJobsFunction {
  const ask = async (given: object): Promise<object | null> => {
    const { identifier, payload, ...spec } = given as TaskSpec & { identifier: string; payload: unknown };
    try {
      const wanted = await lifecycle.askSchedule({ identifier, payload, spec });
      return { ...wanted.spec, identifier, payload: wanted.payload };
    } catch (error) {
      if (error instanceof JobSkippedError) return null;
      throw error;
    }
  };
  const addWanted = async (specs: readonly object[], jobKeyPreserveRunAt?: boolean): Promise<readonly Job[]> => {
    if (!Array.isArray(specs)) return await addJobs(specs as never, jobKeyPreserveRunAt);
    const wanted: object[] = [];
    for (const spec of specs) {
      const answer = typeof spec === "object" && spec !== null ? await ask(spec) : spec;
      if (answer !== null || spec === null) wanted.push(answer);
    }
    return await addJobs(wanted as never, jobKeyPreserveRunAt);
  };
  return addWanted as AddJobsFunction;
}
