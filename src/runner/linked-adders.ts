import type { Adders } from "../client/accept-definitions.ts";
import { type JobLink, linkJobs } from "../db/statements/links.ts";
import type { LinkRecorder } from "../history/link-recorder.ts";
import type { Job } from "../job.ts";
import type { KeepRules } from "../kept-history.ts";
import type { Inside } from "../worker/run/completions.ts";
import type { JobRun } from "../worker/run/job-run.ts";

export interface LinkedAdders {
  /** Adds jobs on behalf of one that runs. */
  of(run: JobRun): Adders;
  /** The same inside a transaction: what is rolled back leaves no link. */
  within(inside: Inside, run: JobRun): Adders;
}

export interface LinkedAddersOptions {
  readonly adders: Adders;
  readonly addersIn: (inside: Inside) => Adders;
  readonly keepRules: KeepRules;
  readonly recorder: LinkRecorder;
}

/** Remembers what the tasks add whose history is kept, and is not there for the others. */
export function linkAdders({ adders, addersIn, keepRules, recorder }: LinkedAddersOptions): LinkedAdders {
  const daysOf = ({ job }: JobRun): number | undefined => {
    const rule = keepRules.of(job.task_identifier);
    return rule && rule.keptAs !== "none" ? rule.completedDays : undefined;
  };
  return {
    of(run) {
      const days = daysOf(run);
      if (days === undefined) return adders;
      return telling(adders, async (added) => recorder.record(linksOf(run, added, days)));
    },
    within(inside, run) {
      const days = daysOf(run);
      const plain = addersIn(inside);
      if (days === undefined) return plain;
      return telling(plain, async (added) => {
        const links = linksOf(run, added, days);
        if (links.length === 0) return;
        await keepRules.opening();
        await inside.run(linkJobs, { links });
      });
    },
  };
}

function telling({ addJob, addJobs }: Adders, tell: (added: readonly Job[]) => Promise<void>): Adders {
  return {
    addJob: (async (...args: Parameters<typeof addJob>) => {
      const job = await addJob(...args);
      await tell([job]);
      return job;
    }) as Adders["addJob"],
    addJobs: (async (...args: Parameters<typeof addJobs>) => {
      const jobs = await addJobs(...args);
      await tell(jobs);
      return jobs;
    }) as Adders["addJobs"],
  };
}

/** A job that a guard left out was not added. */
function linksOf({ job: parent }: JobRun, added: readonly Job[], days: number): JobLink[] {
  return added.flatMap(({ id, skipped }) => (skipped ? [] : { parentId: parent.id, childId: id, days }));
}
