import type { PayloadOf } from "../job.ts";
import type { CronItem, CronItemOptions, CronMatcher, CronPayload, DstPolicy } from "./cron-item.ts";
import { parseSeconds } from "./cron-options.ts";
import { type TimeSpan, toMilliseconds } from "./time-phrase.ts";
import { isTimeZone } from "./time-zone.ts";

/** A payload of the registered type, or any object for a task that is not registered. */
export type CronPayloadOf<Name> = unknown extends PayloadOf<Name> ? CronPayload : Partial<PayloadOf<Name>>;

/**
 * A recurring job in the making. Each method gives a new entry and leaves this one as it was; a value that cannot work
 * throws there and then.
 */
export class CronEntry<Name extends string = string> {
  readonly #item: CronItem;

  constructor(item: CronItem) {
    this.#item = item;
  }

  /** The item as Graphile Worker spells it. */
  build(): CronItem {
    return { ...this.#item, options: { ...this.#item.options } };
  }

  /** Names the entry in the database. Changing it later makes a new entry. */
  id(identifier: string): CronEntry<Name> {
    check(
      /^[_a-zA-Z][-_a-zA-Z0-9]*$/.test(identifier),
      "id",
      identifier,
      "letters, digits, '-' and '_', not starting with a digit",
    );
    return new CronEntry({ ...this.#item, identifier });
  }

  /** Back-fills runs that were missed within this time. */
  fill(span: TimeSpan): CronEntry<Name> {
    return this.#with({ backfillPeriod: toMilliseconds(span) });
  }

  maxAttempts(maxAttempts: number): CronEntry<Name> {
    return this.#with({ maxAttempts: wholeNumber("maxAttempts", maxAttempts, 1, 32_767) });
  }

  queue(queueName: string): CronEntry<Name> {
    check(queueName.length >= 1 && queueName.length <= 128, "queue", queueName, "1 to 128 characters");
    return this.#with({ queueName });
  }

  /** Lower numbers run first. */
  priority(priority: number): CronEntry<Name> {
    return this.#with({ priority: wholeNumber("priority", priority, -32_768, 32_767) });
  }

  jobKey(jobKey: string): CronEntry<Name> {
    check(jobKey.length >= 1 && jobKey.length <= 512, "jobKey", jobKey, "1 to 512 characters");
    return this.#with({ jobKeyMode: "replace", ...this.#item.options, jobKey });
  }

  jobKeyMode(jobKeyMode: NonNullable<CronItemOptions["jobKeyMode"]>): CronEntry<Name> {
    return this.#with({ jobKeyMode: oneOf("jobKeyMode", jobKeyMode, ["replace", "preserve_run_at"]) });
  }

  /** Merged into each job's payload. */
  payload(payload: CronPayloadOf<Name>): CronEntry<Name> {
    const isObject = typeof payload === "object" && payload !== null && !Array.isArray(payload);
    check(isObject, "payload", JSON.stringify(payload), "an object");
    return new CronEntry({ ...this.#item, payload: payload as CronPayload });
  }

  timeZone(timeZone: string): CronEntry<Name> {
    check(isTimeZone(timeZone), "timeZone", timeZone, "a time zone such as 'Europe/Berlin'");
    return this.#with({ timeZone });
  }

  /** What happens to local times that a clock change skips or repeats. */
  dst(policy: DstPolicy): CronEntry<Name> {
    if (policy.skipped !== undefined) oneOf("dst.skipped", policy.skipped, ["run", "skip"]);
    if (policy.repeated !== undefined) oneOf("dst.repeated", policy.repeated, ["first", "last", "both"]);
    return this.#with({ dst: policy });
  }

  /** Which missed runs are caught up on. */
  missed(missed: NonNullable<CronItemOptions["missed"]>): CronEntry<Name> {
    return this.#with({ missed: oneOf("missed", missed, ["all", "last", "none"]) });
  }

  /** Whether a run is left out while the previous job still waits or runs. */
  overlap(overlap: NonNullable<CronItemOptions["overlap"]>): CronEntry<Name> {
    return this.#with({ overlap: oneOf("overlap", overlap, ["allow", "skip"]) });
  }

  flags(...flags: string[]): CronEntry<Name> {
    return this.#with({ flags });
  }

  /** Runs at these seconds of each matching minute, written like a crontab field. */
  seconds(seconds: string): CronEntry<Name> {
    check(parseSeconds(seconds) !== undefined, "seconds", seconds, "a crontab field for the seconds 0 to 59");
    return this.#with({ seconds });
  }

  #with(options: CronItemOptions): CronEntry<Name> {
    return new CronEntry({ ...this.#item, options: { ...this.#item.options, ...options } });
  }
}

/** An entry for a task, before anything else is said about it. */
export function entryFor<Name extends string>(task: Name, match: string | CronMatcher): CronEntry<Name> {
  check(typeof task === "string" && task.length >= 1 && task.length <= 128, "task", String(task), "a task's name");
  return new CronEntry<Name>({ task, match });
}

export function wholeNumber(name: string, value: number, min: number, max: number): number {
  check(Number.isInteger(value) && value >= min && value <= max, name, value, `a whole number from ${min} to ${max}`);
  return value;
}

function oneOf<const Value extends string>(name: string, value: Value, allowed: readonly NoInfer<Value>[]): Value {
  check(allowed.includes(value), name, value, allowed.map((word) => `'${word}'`).join(" or "));
  return value;
}

function check(isGood: boolean, name: string, value: unknown, expected: string): void {
  if (!isGood) throw new RangeError(`'${name}' of a cron entry must be ${expected}, got '${String(value)}'.`);
}
