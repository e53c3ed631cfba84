import { inspect } from "node:util";
import type { Database } from "../db/database.ts";
import { listPauses, type PauseRow, pauseWork, resumeWork } from "../db/statements/pauses.ts";
import { JobSpecError } from "../errors.ts";
import type { Pause, PauseKind, PauseTarget } from "../pause.ts";

export interface PauseOptions {
  /** When the pause ends by itself. If left out, it lasts until it is resumed. */
  readonly until?: Date | undefined;
  /** Why; shown wherever the pause is shown. */
  readonly reason?: string | undefined;
  /** Who pauses. If left out, the database role. */
  readonly by?: string | undefined;
}

/** Pauses and resumes work in all processes. */
export interface PauseAdmin {
  /** Pauses jobs in all processes, within about a second. Running jobs finish. Pausing again replaces `until` and `reason`. */
  pause(target: PauseTarget, options?: PauseOptions): Promise<Pause>;
  /** Ends a pause; returns false if there was none. Other pauses stay in force, even if they cover the same jobs. */
  resume(target: PauseTarget): Promise<boolean>;
  /** Lists the pauses in force, oldest first. */
  listPauses(): Promise<Pause[]>;
}

export function makePauseAdmin(
  database: Pick<Database, "run">,
  { useNodeTime = false }: { readonly useNodeTime?: boolean } = {},
): PauseAdmin {
  return {
    async pause(target, options = {}) {
      const { until, reason, by } = checkOptions(options);
      const params = { until: until ?? null, reason: reason ?? null, pausedBy: by ?? null };
      const [row] = await database.run(pauseWork, { ...checkTarget(target), ...params });
      return toPause(row!);
    },
    async resume(target) {
      const [row] = await database.run(resumeWork, checkTarget(target));
      return row!.was_paused;
    },
    async listPauses() {
      const rows = await database.run(listPauses, { clock: useNodeTime ? new Date() : null });
      return rows.map(toPause);
    },
  };
}

const kinds: readonly PauseKind[] = ["task", "queue", "worker", "cron", "all"];
const optionNames = ["until", "reason", "by"];

function checkTarget(target: PauseTarget): { kind: PauseKind; name: string | null } {
  const given = Object.entries(target ?? {}).filter(([, value]) => value !== undefined);
  const [kind, name] = given[0] ?? [];
  const isKnown = given.length === 1 && (kinds as readonly unknown[]).includes(kind);
  if (!isKnown || (kind === "all" ? name !== true : typeof name !== "string" || name === "")) {
    throw new JobSpecError(
      `Name one thing to pause or resume, such as { task: "mail" }, { queue: "q" }, { worker: "pool-…" }, { cron: "nightly" } or { all: true }; got ${inspect(target)}.`,
    );
  }
  return { kind: kind as PauseKind, name: kind === "all" ? null : (name as string) };
}

function checkOptions(options: PauseOptions): PauseOptions {
  const unknown = Object.keys(options).find((key) => !optionNames.includes(key));
  if (unknown !== undefined)
    throw new JobSpecError(`Unknown option '${unknown}' of a pause; use ${optionNames.join(", ")}.`);
  const { until, reason, by } = options;
  if (until !== undefined && !(until instanceof Date && until.getTime() > Date.now())) {
    throw new JobSpecError(`'until' must be a Date in the future, got ${inspect(until)}.`);
  }
  for (const [key, value] of Object.entries({ reason, by })) {
    if (value !== undefined && typeof value !== "string") {
      throw new JobSpecError(`'${key}' must be a string, got ${inspect(value)}.`);
    }
  }
  return options;
}

function toPause({ kind, name, paused_at: pausedAt, until, reason, paused_by: pausedBy }: PauseRow): Pause {
  return { kind, name, pausedAt, until, reason, pausedBy };
}
