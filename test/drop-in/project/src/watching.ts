import type { Job, WorkerEvents } from "graphile-worker";

/** What was heard of each job, in order; the order of the jobs is not part of it. */
export interface Watched {
  take(): string[][];
}

export function watchJobs(events: WorkerEvents): Watched {
  const heardById = new Map<string, string[]>();
  const note = ({ id, task_identifier, payload }: Job, what: string): void => {
    const heard = heardById.get(id) ?? [`${task_identifier} ${JSON.stringify(payload)}`];
    heardById.set(id, [...heard, what]);
  };
  events.on("job:start", ({ worker, job }) => note(job, `start ${worker.workerId.startsWith("worker-")}`));
  events.on("job:success", ({ job }) => note(job, "success"));
  events.on("job:error", ({ job, error, batchJobErrors }) =>
    note(job, `error ${messageOf(job, error)} ${batchJobErrors?.length}`),
  );
  events.on("job:failed", ({ job, error }) => note(job, `failed ${messageOf(job, error)}`));
  events.on("job:complete", ({ job, error }) => note(job, `complete ${messageOf(job, error)}`));
  return {
    take() {
      const heard = [...heardById.values()].sort((one, other) =>
        JSON.stringify(one).localeCompare(JSON.stringify(other)),
      );
      heardById.clear();
      return heard;
    },
  };
}

/** What an executable's failure is called is left open. */
function messageOf({ task_identifier }: Job, error: unknown): string {
  return error instanceof Error && task_identifier !== "convert" ? error.message : typeof error;
}
