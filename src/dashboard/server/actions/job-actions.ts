import type { QueueUtils, RescheduleOptions } from "../../../index.ts";
import type { JobActionName } from "../../contract.ts";
import { Fields } from "../read-fields.ts";
import { badRequest } from "../refusal.ts";
import { type Action, type Done, say } from "./action.ts";

/** What an action does with some jobs: those that it has changed. */
type ChangeJobs = (utils: QueueUtils, ids: readonly string[]) => Promise<readonly { readonly id: string }[]>;

interface JobAction {
  /** Fields that it takes beside the jobs. */
  readonly fields: readonly string[];
  /** "Retried 3 jobs." */
  readonly did: string;
  prepare(fields: Fields): { readonly change: ChangeJobs; readonly values: Readonly<Record<string, unknown>> };
}

const smallest = -32_768;
const largest = 32_767;

/** Actions on jobs, for some by id and for all that match a filter. */
export const jobActions: Readonly<Record<JobActionName, JobAction>> = {
  retry: {
    fields: [],
    did: "Retried",
    prepare: () => ({ change: (utils, ids) => utils.retryJobs(ids), values: {} }),
  },
  runNow: {
    fields: [],
    did: "Made due now:",
    prepare: () => ({ change: (utils, ids) => utils.rescheduleJobs(ids, { runAt: "now" }), values: {} }),
  },
  reschedule: {
    fields: ["runAt", "priority", "maxAttempts"],
    did: "Rescheduled",
    prepare(fields) {
      const runAt = fields.optionalMoment("runAt")?.toISOString();
      const priority = fields.optionalInteger("priority", smallest, largest);
      const maxAttempts = fields.optionalInteger("maxAttempts", 1, largest);
      const values: RescheduleOptions = {
        ...(runAt !== undefined && { runAt }),
        ...(priority !== undefined && { priority }),
        ...(maxAttempts !== undefined && { maxAttempts }),
      };
      if (Object.keys(values).length === 0) throw badRequest("Say what to change: runAt, priority or maxAttempts.");
      return { change: (utils, ids) => utils.rescheduleJobs(ids, values), values: { ...values } };
    },
  },
  cancel: {
    fields: ["reason"],
    did: "Cancelled",
    prepare(fields) {
      const reason = fields.optionalText("reason");
      const change: ChangeJobs = async (utils, ids) => {
        const { cancelled, stopping } = await utils.cancelJobs(ids, reason === undefined ? {} : { reason });
        return [...cancelled, ...stopping];
      };
      return { change, values: reason === undefined ? {} : { reason } };
    },
  },
  fail: {
    fields: ["reason"],
    did: "Failed",
    prepare(fields) {
      const reason = fields.optionalText("reason");
      return {
        change: (utils, ids) => utils.permanentlyFailJobs(ids, reason ?? "Failed by hand"),
        values: reason === undefined ? {} : { reason },
      };
    },
  },
  remove: {
    fields: [],
    did: "Removed",
    prepare: () => ({ change: (utils, ids) => utils.completeJobs(ids), values: {} }),
  },
};

export function describeChange(name: JobActionName, changed: number, wanted: number): string {
  const rest = wanted - changed;
  const left = rest > 0 ? ` ${say(rest, "other")} ${rest === 1 ? "was" : "were"} running or gone, and left alone.` : "";
  return `${jobActions[name].did} ${say(changed, "job")}.${left}`;
}

/** The action on jobs that are named by their ids. */
export function actionById(name: JobActionName): Action {
  const { fields: further, prepare } = jobActions[name];
  return ({ utils }, body) => {
    const fields = new Fields(body, ["ids", ...further]);
    const ids = fields.ids("ids");
    const { change, values } = prepare(fields);
    return {
      target: { ids, ...values },
      async run(): Promise<Done> {
        const changed = (await change(utils, ids)).map(({ id }) => id);
        return { changed: changed.length, ids: changed, message: describeChange(name, changed.length, ids.length) };
      },
    };
  };
}
