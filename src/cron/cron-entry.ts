import type { PayloadOf, TaskName } from "../job.ts";
import { type AnyTaskDefinition, isTaskDefinition, type TaskInput } from "../task-definition.ts";
import { expectWholeNumber } from "../util/whole-number.ts";
import type { CronItem, CronItemOptions, CronMatcher, CronPayload, DstPolicy } from "./cron-item.ts";
import { parseSeconds } from "./cron-options.ts";
import { type TimeSpan, toMilliseconds } from "./time-phrase.ts";
import { isTimeZone } from "./time-zone.ts";

/** What a recurring job runs: the name of a task, or its definition. */
export type CronTask = TaskName | AnyTaskDefinition;

/** What a definition takes, a part of the registered type, or any object for a task that is not registered. */
export type CronPayloadOf<Task> = Task extends AnyTaskDefinition
  ? TaskInput<Task>
  : unknown extends PayloadOf<Task>
    ? CronPayload
    : Partial<PayloadOf<Task>>;

/** A recurring job being built. Each method returns a new entry and does not change this one; an invalid value throws at once. */
export class CronEntry<Task extends CronTask = string> {
  readonly #item: CronItem;

  constructor(item: CronItem) {
    this.#item = item;
  }

  /** Returns the entry as a `CronItem` of Graphile Worker. */
  build(): CronItem {
    return { ...this.#item, options: { ...this.#item.options } };
  }

  /** Names the entry in the database; the task's name if left out. A changed name is a new entry. */
  id(identifier: string): CronEntry<Task> {
    check(
      /^[_a-zA-Z][-_a-zA-Z0-9]*$/.test(identifier),
      "id",
      identifier,
      "letters, digits, '-' and '_', not starting with a digit",
    );
    return new CronEntry({ ...this.#item, identifier });
  }

  /** Runs what was missed within this time while no worker was up. */
  fill(span: TimeSpan): CronEntry<Task> {
    return this.#with({ backfillPeriod: toMilliseconds(span) });
  }

  /** How often each job is tried. */
  maxAttempts(maxAttempts: number): CronEntry<Task> {
    return this.#with({ maxAttempts: wholeNumber("maxAttempts", maxAttempts, 1, 32_767) });
  }

  /** The named queue of its jobs. */
  queue(queueName: string): CronEntry<Task> {
    check(queueName.length >= 1 && queueName.length <= 128, "queue", queueName, "1 to 128 characters");
    return this.#with({ queueName });
  }

  /** Lower numbers run first. */
  priority(priority: number): CronEntry<Task> {
    return this.#with({ priority: wholeNumber("priority", priority, -32_768, 32_767) });
  }

  /** The key of its jobs. */
  jobKey(jobKey: string): CronEntry<Task> {
    check(jobKey.length >= 1 && jobKey.length <= 512, "jobKey", jobKey, "1 to 512 characters");
    return this.#with({ jobKeyMode: "replace", ...this.#item.options, jobKey });
  }

  /** What happens if a job with the key exists. */
  jobKeyMode(jobKeyMode: NonNullable<CronItemOptions["jobKeyMode"]>): CronEntry<Task> {
    return this.#with({ jobKeyMode: oneOf("jobKeyMode", jobKeyMode, ["replace", "preserve_run_at"]) });
  }

  /** Merged into each job's payload. */
  payload(payload: CronPayloadOf<Task>): CronEntry<Task> {
    const isObject = typeof payload === "object" && payload !== null && !Array.isArray(payload);
    check(isObject, "payload", JSON.stringify(payload), "an object");
    return new CronEntry({ ...this.#item, payload: payload as CronPayload });
  }

  /** The time zone of its times, such as `Europe/Berlin`. */
  timeZone(timeZone: string): CronEntry<Task> {
    check(isTimeZone(timeZone), "timeZone", timeZone, "a time zone such as 'Europe/Berlin'");
    return this.#with({ timeZone });
  }

  /** What happens to local times that a clock change skips or repeats. */
  dst(policy: DstPolicy): CronEntry<Task> {
    if (policy.skipped !== undefined) oneOf("dst.skipped", policy.skipped, ["run", "skip"]);
    if (policy.repeated !== undefined) oneOf("dst.repeated", policy.repeated, ["first", "last", "both"]);
    return this.#with({ dst: policy });
  }

  /** Which missed runs `fill` catches up on. */
  missed(missed: NonNullable<CronItemOptions["missed"]>): CronEntry<Task> {
    return this.#with({ missed: oneOf("missed", missed, ["all", "last", "none"]) });
  }

  /** Whether to skip a run while the previous job still waits or runs. */
  overlap(overlap: NonNullable<CronItemOptions["overlap"]>): CronEntry<Task> {
    return this.#with({ overlap: oneOf("overlap", overlap, ["allow", "skip"]) });
  }

  /** The flags of its jobs. */
  flags(...flags: string[]): CronEntry<Task> {
    return this.#with({ flags });
  }

  /** Runs at these seconds of each matching minute, written like a crontab field. */
  seconds(seconds: string): CronEntry<Task> {
    check(parseSeconds(seconds) !== undefined, "seconds", seconds, "a crontab field for the seconds 0 to 59");
    return this.#with({ seconds });
  }

  #with(options: CronItemOptions): CronEntry<Task> {
    return new CronEntry({ ...this.#item, options: { ...this.#item.options, ...options } });
  }
}

/** An entry for a task, without further options. */
export function entryFor<Task extends CronTask>(task: Task, match: string | CronMatcher): CronEntry<Task> {
  const name = taskNameOf(task);
  check(typeof name === "string" && name.length >= 1 && name.length <= 128, "task", String(name), "a task's name");
  return new CronEntry<Task>({ task: name, match });
}

export function taskNameOf(task: CronTask): string {
  return isTaskDefinition(task) ? task.identifier : task;
}

export function wholeNumber(name: string, value: number, min: number, max: number): number {
  const expected = expectWholeNumber(value, min, max);
  if (expected) check(false, name, value, expected);
  return value;
}

function oneOf<const Value extends string>(name: string, value: Value, allowed: readonly NoInfer<Value>[]): Value {
  check(allowed.includes(value), name, value, allowed.map((word) => `'${word}'`).join(" or "));
  return value;
}

function check(isGood: boolean, name: string, value: unknown, expected: string): void {
  if (!isGood) throw new RangeError(`'${name}' of a cron entry must be ${expected}, got '${String(value)}'.`);
}
