import { inspect } from "node:util";
import type { Guard } from "../db/statements/guards.ts";
import { JobSpecError } from "../errors.ts";
import { checkName } from "../job-checks.ts";
import { toMs } from "../task-options.ts";
import { suggestion } from "../util/nearest.ts";

/** Each says what happens if there is such a job already. */
const answers = ["debounce", "throttle", "singleton", "jobKey"] as const;
const keysOf = {
  debounce: ["key", "delay", "maxWait"],
  throttle: ["key", "period"],
  singleton: ["key", "onConflict"],
} as const;
const conflicts = ["skip", "replace", "cancelRunning"];
/** A century: what is longer is a mistake, and PostgreSQL's dates end somewhere. */
const longestMs = 36_525 * 86_400_000;

type Given = Readonly<Record<string, unknown>>;

/** Reads the guard of a job's spec and refuses what does not go together with it; null if there is none. */
export function readGuard(spec: Given): Guard | null {
  const [kind, second] = answers.filter((name) => isGiven(spec[name]));
  if (kind === undefined || kind === "jobKey") return null;
  const other = second ?? ["jobKeyMode", "cancelRunning"].find((name) => isGiven(spec[name]) && spec[name] !== false);
  if (other !== undefined) {
    throw new JobSpecError(
      `'${kind}' and '${other}' cannot be combined: each says what happens if there is such a job already. Leave one of them out.`,
    );
  }
  if (kind === "debounce" && isGiven(spec.runAt)) {
    throw new JobSpecError("'debounce' and 'runAt' cannot be combined: 'debounce.delay' says when the job runs.");
  }
  return guardReaders[kind](checkKeys(kind, spec[kind]));
}

const guardReaders = {
  debounce: (given: Given): Guard => {
    const delay = readSpan("debounce.delay", given.delay);
    const maxWait = isGiven(given.maxWait) ? readSpan("debounce.maxWait", given.maxWait) : null;
    if (maxWait !== null && maxWait < delay) {
      throw new JobSpecError(
        `'debounce.maxWait' must not be shorter than 'debounce.delay', got ${inspect(given.maxWait)} and ${inspect(given.delay)}.`,
      );
    }
    return { kind: "debounce", key: checkName("debounce.key", given.key, 512), delay, maxWait };
  },
  throttle: (given: Given): Guard => ({
    kind: "throttle",
    key: checkName("throttle.key", given.key, 512),
    period: readSpan("throttle.period", given.period),
  }),
  singleton: (given: Given): Guard => {
    const onConflict = given.onConflict ?? "skip";
    if (typeof onConflict !== "string" || !conflicts.includes(onConflict)) {
      throw new JobSpecError(
        `'singleton.onConflict' must be 'skip', 'replace' or 'cancelRunning', got ${inspect(onConflict)}.` +
          (typeof onConflict === "string" ? suggestion(onConflict, conflicts) : ""),
      );
    }
    return { kind: "singleton", key: checkName("singleton.key", given.key, 512), onConflict };
  },
};

function checkKeys(kind: keyof typeof keysOf, given: unknown): Given {
  const known = keysOf[kind];
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw new JobSpecError(`'${kind}' must be an object { ${known.join(", ")} }, got ${inspect(given)}.`);
  }
  const unknown = Object.keys(given).find((key) => !(known as readonly string[]).includes(key));
  if (unknown === undefined) return given as Given;
  throw new JobSpecError(`Unknown key '${unknown}' in '${kind}'.${suggestion(unknown, known)}`);
}

function readSpan(name: string, value: unknown): number {
  const ms = toMs(value);
  if (ms !== undefined && ms >= 1 && ms <= longestMs) return ms;
  throw new JobSpecError(
    `'${name}' must be a number of milliseconds from 1 to ${longestMs}, or a string such as '30s', got ${inspect(value)}.`,
  );
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}
