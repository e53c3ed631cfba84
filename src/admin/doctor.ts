import { checkSchemaIsKnown, judgeSchema } from "../db/adopt.ts";
import type { Database } from "../db/database.ts";
import { describeHolder, heldSeconds, vacuumPatienceSeconds } from "../db/describe-holder.ts";
import { findOddSettings } from "../db/odd-settings.ts";
import { planMigrations } from "../db/plan-migration.ts";
import { probeNotifications, probePreparedStatements } from "../db/probes.ts";
import { readSchemaState } from "../db/schema-state.ts";
import { findIgnoredCancels, listOverruns } from "../db/statements/control.ts";
import {
  countOldLocks,
  findOrphans,
  listIndexes,
  listVacuumHolders,
  readHistoryHealth,
  readServerFacts,
  readTableHealth,
} from "../db/statements/diagnose.ts";
import { type LimitIndexRow, listLimitBuilds, listLimitIndexes } from "../db/statements/limit-indexes.ts";
import { findLimitStrangers, hasLimits } from "../db/statements/limits.ts";
import { listLimits } from "../db/statements/set-limits.ts";
import { toError } from "../errors.ts";
import { describePause } from "../pause.ts";
import { wallMs } from "../util/timers.ts";
import { readPauses } from "./read-pauses.ts";

/** One thing that was looked at. */
export interface CheckUp {
  readonly name: string;
  /** `warning`: it works, but not as well as it could. */
  readonly status: "ok" | "warning" | "problem";
  readonly message: string;
}

export interface ExamineHealthOptions {
  /** Leaves out what reads every job. */
  readonly isQuick?: boolean | undefined;
}

/** They read every job. */
const slowChecks = ["references"];

type Check = (db: Database) => Promise<Omit<CheckUp, "name">>;

const neededIndexes = [
  "jobs_pkey1",
  "jobs_key_key1",
  "tasks_identifier_key",
  "job_queues_queue_name_key",
  "_hathi_jobs_in_queues",
  "_hathi_jobs_by_task",
  "_hathi_jobs_by_queue",
];

/** A worker that starts on an empty schema may settle some jobs before there are partitions. */
const maxUnplaced = 100_000;

const notInstalled = "is not installed here: run 'hathi migrate'.";

const checks: Record<string, Check> = {
  server: async (db) => {
    const [facts] = await db.run(readServerFacts, { schema: db.schema });
    const { version, role, database, connections, max_connections: most } = facts!;
    const message = `PostgreSQL ${version}, database '${database}' as '${role}', ${connections} of ${most} connections in use.`;
    return connections > most * 0.9 ? warning(`${message} New connections will soon be refused.`) : ok(message);
  },
  schema: async (db) => {
    const state = await db.withPgClient((client) => readSchemaState(client, db.schema));
    if (!state.ours?.length && judgeSchema(state, db.schema) === "fresh")
      return problem(`Schema '${db.schema}' ${notInstalled}`);
    const newer = checkSchemaIsKnown(state);
    if (newer) return warning(newer);
    const pending = planMigrations(state, db.schema);
    const found = `Schema '${db.schema}' is at revision ${state.recorded?.at(-1)}, and ${state.ours?.at(-1) ?? 0} of our own.`;
    return pending.length > 0 ? warning(`${found} It is not up to date: run 'hathi migrate'.`) : ok(found);
  },
  clock: async (db) => {
    const sent = wallMs();
    const [facts] = await db.run(readServerFacts, { schema: db.schema });
    const skewMs = Math.round(facts!.clock_ms - (sent + wallMs()) / 2);
    const message = `The database's clock is ${Math.abs(skewMs)} ms ${skewMs < 0 ? "behind" : "ahead of"} this machine's.`;
    return Math.abs(skewMs) > 2_000
      ? warning(`${message} Times given by this machine will be off by as much.`)
      : ok(message);
  },
  indexes: async (db) => {
    const valid = new Map((await db.run(listIndexes, { schema: db.schema })).map((row) => [row.name, row.is_valid]));
    const missing = neededIndexes.filter((name) => !valid.get(name));
    if (missing.length === 0) return ok("All indexes are there and valid.");
    return problem(
      `Missing or invalid: ${missing.join(", ")}. Run 'hathi migrate', or make them by hand from schema.sql.`,
    );
  },
  permissions: async (db) => {
    const [facts] = await db.run(readServerFacts, { schema: db.schema });
    if (facts!.sees_jobs) return ok("The role sees all jobs.");
    return problem(
      `The role '${facts!.role}' does not own the tables and no policy shows it all jobs: row-level security hides them. See docs/least-privilege.md.`,
    );
  },
  settings: async (db) => {
    const odd = await findOddSettings(db);
    if (odd.length === 0) return ok("No setting of the role stands in the way.");
    const message = odd.map((setting) => setting.message).join(" ");
    return odd.some(({ status }) => status === "problem") ? problem(message) : warning(message);
  },
  notifications: async (db) => {
    if (await probeNotifications(db, 2_000)) return ok("A notification sent on one connection is heard on another.");
    return warning(
      "Notifications are not heard (a pooler in transaction mode?): new jobs wait for the next poll. Give the worker a direct line with 'listenConnectionString'.",
    );
  },
  "prepared statements": async (db) => {
    if (await probePreparedStatements(db)) return ok("Prepared statements survive between queries.");
    return warning("Prepared statements do not survive (a pooler in transaction mode?): use --no-prepared-statements.");
  },
  bloat: async (db) => {
    const [health] = await db.run(readTableHealth, { schema: db.schema });
    if (!health) return ok("There is no table of jobs yet.");
    const { live, dead, bytes, last_vacuum: vacuumed } = health;
    const message = `${count(live)} live and ${count(dead)} dead rows in ${Math.ceil(bytes / 2 ** 20)} MB, last vacuum ${vacuumed?.toISOString() ?? "never"}.`;
    return dead > 50_000 && dead > live
      ? warning(`${message} Vacuum does not keep up; see the oldest transaction.`)
      : ok(message);
  },
  "oldest transaction": async (db) => {
    const holders = await db.run(listVacuumHolders, {});
    const [oldest] = holders;
    if (!oldest) return ok("No transaction holds vacuum back.");
    const offending = holders.filter((holder) => heldSeconds(holder) > vacuumPatienceSeconds);
    if (offending.length === 0) return ok(`The oldest is ${describeHolder(oldest)}.`);
    return warning(
      `Vacuum cannot clear away finished jobs, and workers become slower, because of ${offending.map(describeHolder).join("; ")}.`,
    );
  },
  references: async (db) => {
    const [orphans] = await db.run(findOrphans, {});
    if (!orphans || orphans.jobs === 0) return ok("Every job has its task and its queue.");
    const { jobs, task_ids: taskIds, queue_ids: queueIds } = orphans;
    const missing = [
      ...(taskIds ? [`tasks with the ids ${someOf(taskIds)}`] : []),
      ...(queueIds ? [`queues with the ids ${someOf(queueIds)}`] : []),
    ].join(" and ");
    return problem(
      `${count(jobs)} jobs cannot run: the rows of ${missing} are gone. Point them to existing ones (task_id, job_queue_id), or delete them.`,
    );
  },
  pauses: async (db) => {
    const pauses = await readPauses(db);
    if (pauses.length === 0) return ok("Nothing is paused.");
    const ignored = pauses.some(({ kind }) => kind !== "queue");
    return warning(
      `Paused: ${pauses.map(describePause).join("; ")}.` +
        (ignored ? " Workers of Graphile Worker obey pauses of queues only." : ""),
    );
  },
  limits: async (db) => {
    const [table] = await db.run(hasLimits, { schema: db.schema });
    const limits = table?.has ? await db.run(listLimits, { countJobs: false }) : [];
    if (limits.length === 0) return ok("No task has limits.");
    const missing = (await db.run(listLimitIndexes, {})).filter(({ is_valid }) => !is_valid);
    const [strangers] = await db.run(findLimitStrangers, {});
    const troubles = [
      ...(missing.length > 0
        ? [
            `${count(missing.length)} indexes for limits are missing (${await describeBuilds(db, missing)}); until they are built, claims of these tasks are slower.`,
          ]
        : []),
      ...(strangers && (strangers.jobs > 0 || strangers.listeners > 0)
        ? [
            `Workers of Graphile Worker run beside these limits (${count(strangers.jobs)} jobs of limited tasks are locked by them): their jobs are counted, but they obey no limit.`,
          ]
        : []),
    ];
    const names = [...new Set(limits.map(({ name }) => `'${name}'`))].join(", ");
    return troubles.length > 0 ? warning(troubles.join(" ")) : ok(`Limits: ${names}. Their indexes are built.`);
  },
  overruns: async (db) => {
    const overruns = await db.run(listOverruns, { jobId: null, workerId: null });
    if (overruns.length === 0) return ok("No task runs on after its timeout.");
    const tasks = [...new Set(overruns.map((row) => `'${row.task_identifier}'`))].join(", ");
    return warning(
      `${count(overruns.length)} jobs run on after their timeout, each in a slot of its worker (tasks: ${tasks}). Let the tasks stop when helpers.abortSignal fires; 'hathi why <id>' tells more.`,
    );
  },
  cancels: async (db) => {
    const [found] = await db.run(findIgnoredCancels, {});
    if (!found || found.jobs === 0) return ok("No cancelled job runs on.");
    return warning(
      `${count(found.jobs)} jobs were cancelled more than 30 seconds ago and still run, in ${found.workers.join(", ")}. Their tasks ignore helpers.abortSignal, or ` +
        "their workers are Graphile Worker's, which cannot be notified and ignore timeouts and back-off too. These jobs do not run again.",
    );
  },
  history: async (db) => {
    const [health] = await db.run(readHistoryHealth, { most: maxUnplaced + 1 });
    const { partitions, bytes, expired, unplaced } = health!;
    if (expired > 0)
      return warning(
        `${count(expired)} partitions of history have expired and are still there: a worker with the option 'history' drops them, or 'hathi cleanup drop-expired-history'.`,
      );
    if (unplaced > maxUnplaced)
      return warning(
        `More than ${count(maxUnplaced)} rows of history have no partition of their day, and will be deleted one by one. Workers make partitions for three days ahead, ` +
          "if they may: see docs/least-privilege.md.",
      );
    if (partitions === 0 && unplaced === 0) return ok("No history is kept.");
    return ok(`History takes ${Math.ceil(bytes / 2 ** 20)} MB in ${count(partitions)} partitions.`);
  },
  locks: async (db) => {
    const [old] = await db.run(countOldLocks, {});
    if (!old || old.count === 0) return ok("No job has been locked for more than four hours.");
    return warning(
      `${count(old.count)} jobs have been locked for more than four hours; a running worker would have freed them.`,
    );
  },
};

/** Looks at everything that makes a queue slow or silent. A check that fails itself is a problem, not an end. */
export async function examineHealth(db: Database, { isQuick = false }: ExamineHealthOptions = {}): Promise<CheckUp[]> {
  const results: CheckUp[] = [];
  for (const [name, check] of Object.entries(checks)) {
    if (isQuick && slowChecks.includes(name)) continue;
    const result = await check(db).catch((error: unknown) => problem(toError(error).message));
    results.push({ name, ...result });
    // Nothing else can be said of tables that are not there.
    if (result.status === "problem" && result.message.endsWith(notInstalled)) break;
  }
  return results;
}

/** How far the build of each index is. */
async function describeBuilds(db: Database, missing: readonly LimitIndexRow[]): Promise<string> {
  const builds = await db.run(listLimitBuilds, {});
  return missing
    .map(({ name, task }) => {
      const build = builds.find((each) => each.name === name);
      return `${name} of task '${task}'${build ? `: ${build.phase}, ${build.percent} %` : ""}`;
    })
    .join("; ");
}

function ok(message: string): Omit<CheckUp, "name"> {
  return { status: "ok", message };
}

function warning(message: string): Omit<CheckUp, "name"> {
  return { status: "warning", message };
}

function problem(message: string): Omit<CheckUp, "name"> {
  return { status: "problem", message };
}

function count(number: number): string {
  return number.toLocaleString("en-GB");
}

function someOf(ids: readonly number[]): string {
  return ids.length > 10 ? `${ids.slice(0, 10).join(", ")} and ${ids.length - 10} more` : ids.join(", ");
}
