import { errorFields, errorLine } from "./error-text.ts";
import { asText, isError, messageOf } from "./errors.ts";
import { clip } from "./util/clip.ts";
import { peek, type Replace, toPlain } from "./util/plain.ts";

/** What a logger is given besides the message. */
export type Meta = Readonly<Record<string, unknown>>;

/** A client or a pool in the details is a page of noise. */
const noise = new Set(["pgPool", "workerPool", "worker", "client", "ctx"]);
const maxValueBytes = 1_024;

const replace: Replace = (value, key) => {
  if (noise.has(key)) return { by: undefined };
  return isError(value) ? { by: errorFields(value) } : undefined;
};

/** The details of a log line for programs: bounded, and without anything that JSON cannot hold. */
export function metaFields(meta: Meta): object {
  const plain = toPlain(meta, replace);
  return typeof plain === "object" && plain !== null ? plain : { meta: plain };
}

/** The details of a log line for people, to be put behind its message: what the message does not say itself. */
export function metaText(message: string, meta: Meta = {}): string {
  // Lines about how a job ended say it all, and there is one for every job.
  if ("job" in meta && (meta.success === true || meta.failure === true)) return "";
  let text = "";
  for (const key of Object.keys(meta)) {
    const value = peek(meta, key);
    if (value === undefined || noise.has(key)) continue;
    if (isError(value)) text += errorPart(key, value, message);
    else if (key !== "job" || !message.includes(asText(peek(value, "id")))) text += ` ${key}=${valueText(value)}`;
  }
  return text;
}

/** Messages mostly end with what an error says, but without its causes. */
function errorPart(key: string, error: Error, message: string): string {
  const text = errorLine(error);
  if (message.includes(text)) return "";
  const said = messageOf(error);
  return message.includes(said) && text.startsWith(`${said}; `)
    ? ` (${text.slice(said.length + 2)})`
    : ` ${key}=${JSON.stringify(text)}`;
}

function valueText(value: unknown): string {
  const plain = toPlain(value, replace);
  const text = typeof plain === "string" && /^[^\s"=]+$/.test(plain) ? plain : (JSON.stringify(plain) ?? "");
  return clip(text, maxValueBytes);
}
