import { asText, HathiError, isError, messageOf } from "./errors.ts";
import { clip } from "./util/clip.ts";
import { peek, toPlain } from "./util/plain.ts";

/** `last_error`, and a line of a plain log, take this many bytes at most; head and tail are kept. */
export const maxTextBytes = 65_536;
/** Everything but the message at the top is cut to this, so that the message leaves room for the rest. */
const maxPartBytes = 8_192;
const maxMessageBytes = maxTextBytes - 2 * maxPartBytes;
const maxDepth = 8;
/** Errors that are looked at for one text, the first among them. */
const maxErrors = 32;

/** What an error says: read safely, so that nothing that is made of it can throw. */
interface Facts {
  /** Undefined for a value that is no error. */
  readonly name: string | undefined;
  readonly message: string;
  readonly stack: string | undefined;
  /** The code of an error; of other thrown objects, everything they carry. */
  readonly properties: readonly (readonly [string, unknown])[];
  readonly causes: readonly { readonly label: "cause" | "error"; readonly facts: Facts }[];
  /** How many causes and errors were left out. */
  readonly omitted: number;
}

/** What is stored as `last_error`: the message, and below it what else is known (code, causes, joined errors). */
export function errorText(thrown: unknown): string {
  const facts = readFacts(thrown, messageOf(thrown));
  return clip([facts.message, ...details(facts, brief, "  ")].join("\n").replaceAll("\u0000", ""), maxTextBytes);
}

/** The name and the message alone, as `String(error)` has them; but this never throws. */
export function errorTitle(thrown: unknown): string {
  return titleOf(readFacts(thrown, messageOf(thrown)));
}

/** The text of an error on one line. */
export function errorLine(thrown: unknown): string {
  return errorText(thrown).replaceAll(/\n\s*/g, "; ");
}

/** The text of an error with stacks, for people. */
export function errorStack(thrown: unknown): string {
  const facts = readFacts(thrown, messageOf(thrown));
  return clip([stackOf(facts), ...details(facts, withStacks, "  ")].join("\n"), maxTextBytes);
}

/** What an error says as an object, for JSON. */
export function errorFields(thrown: unknown): object {
  return fieldsOf(readFacts(thrown, messageOf(thrown)));
}

interface Reading {
  readonly parents: readonly unknown[];
  readonly budget: { left: number };
}

function readFacts(
  thrown: unknown,
  message: string,
  reading: Reading = { parents: [], budget: { left: maxErrors } },
): Facts {
  reading.budget.left--;
  const maxBytes = reading.parents.length === 0 ? maxMessageBytes : maxPartBytes;
  const name = peek(thrown, "name");
  const stack = peek(thrown, "stack");
  return {
    name: isError(thrown) ? clip(typeof name === "string" && name !== "" ? name : "Error", 256) : undefined,
    message: clip(message, maxBytes),
    stack: typeof stack === "string" && stack !== "" ? clip(stack.trim(), maxBytes) : undefined,
    properties: propertiesOf(thrown),
    ...readCauses(thrown, { ...reading, parents: [...reading.parents, thrown] }),
  };
}

function readCauses(thrown: unknown, reading: Reading): Pick<Facts, "causes" | "omitted"> {
  const cause = peek(thrown, "cause");
  const found = [
    ...(cause === undefined || cause === null ? [] : [{ label: "cause" as const, value: cause }]),
    ...errorsOf(thrown).map((value) => ({ label: "error" as const, value })),
  ].filter(({ value }) => !reading.parents.includes(value));
  const causes: { label: "cause" | "error"; facts: Facts }[] = [];
  for (const { label, value } of found) {
    if (reading.parents.length >= maxDepth || reading.budget.left <= 0) break;
    causes.push({ label, facts: readFacts(value, hasMessage(value) ? messageOf(value) : asText(value), reading) });
  }
  return { causes, omitted: found.length - causes.length };
}

function hasMessage(value: unknown): boolean {
  return isError(value) || typeof peek(value, "message") === "string";
}

/** The errors of an AggregateError, and of whatever looks like one. */
function errorsOf(thrown: unknown): readonly unknown[] {
  try {
    const errors = peek(thrown, "errors");
    return isError(thrown) && Array.isArray(errors) ? Array.from(errors) : [];
  } catch {
    return [];
  }
}

const shownElsewhere = new Set(["name", "message", "stack", "cause"]);

function propertiesOf(thrown: unknown): [string, unknown][] {
  if (isError(thrown)) {
    // Our own errors say it all in their message; those of HTTP clients carry whole requests, secrets included.
    const code = thrown instanceof HathiError ? undefined : peek(thrown, "code");
    return typeof code === "string" || typeof code === "number" ? [["code", clip(String(code), 256)]] : [];
  }
  const plain = hasMessage(thrown) ? toPlain(thrown) : undefined; // without a message, the object is the message
  return Object.entries(plain ?? {}).filter(([key]) => !shownElsewhere.has(key));
}

interface Style {
  readonly title: (facts: Facts) => string;
  /** True if the title would say nothing new below this message. */
  readonly isKnown: (facts: Facts, message: string) => boolean;
}

const brief: Style = {
  title: titleOf,
  // Those who wrap an error often repeat its message; an AggregateError is often nothing but its errors.
  isKnown: ({ name, message }, above) => message === name || message === "" || quotes(above, message),
};

const withStacks: Style = {
  title: stackOf,
  isKnown: (facts, above) =>
    facts.stack === undefined ? brief.isKnown(facts, above) : facts.message === facts.name && facts.causes.length > 0,
};

/** `above` is the message under which these lines stand. */
function* details(facts: Facts, style: Style, indent: string, above = facts.message): Generator<string> {
  const { properties, causes, omitted } = facts;
  for (const [key, value] of properties) {
    const text = asText(value);
    if (!quotes(above, text)) yield `${indent}${key}: ${text}`;
  }
  for (const { label, facts: below } of causes) {
    if (style.isKnown(below, above)) {
      yield* details(below, style, indent, above);
    } else {
      yield indent + `${label}: ${style.title(below)}`.replaceAll("\n", `\n${indent}`);
      yield* details(below, style, `${indent}  `);
    }
  }
  if (omitted > 0) yield `${indent}and ${omitted} more`;
}

function titleOf({ name, message }: Facts): string {
  return name === undefined || name === message ? message : `${name}: ${message}`;
}

function stackOf(facts: Facts): string {
  const { message, stack } = facts;
  if (stack === undefined) return titleOf(facts);
  return stack.includes(message) ? stack : `${titleOf(facts)}\n${stack}`;
}

/** True if a string contains another one as whole words. */
function quotes(text: string, part: string): boolean {
  if (part === "") return false;
  for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + 1)) {
    if (!areOneWord(text[at - 1], part[0]) && !areOneWord(part.at(-1), text[at + part.length])) return true;
  }
  return false;
}

function areOneWord(left = "", right = ""): boolean {
  return /\w/.test(left) && /\w/.test(right);
}

function fieldsOf({ name, message, stack, properties, causes, omitted }: Facts): object {
  const listOf = (wanted: string): object[] =>
    causes.filter(({ label }) => label === wanted).map(({ facts }) => fieldsOf(facts));
  const [cause] = listOf("cause");
  const errors = listOf("error");
  return {
    ...(name !== undefined && { name }),
    message: clip(message, maxPartBytes),
    ...Object.fromEntries(properties),
    ...(stack !== undefined && { stack: clip(stack, maxPartBytes) }),
    ...(cause && { cause }),
    ...(errors.length > 0 && { errors }),
    ...(omitted > 0 && { omitted }),
  };
}
