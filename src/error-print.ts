import { createHash } from "node:crypto";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { messageOf } from "./errors.ts";
import { clip } from "./util/clip.ts";
import { peek } from "./util/plain.ts";

/** What makes failures of a task the same failure. */
export interface ErrorPrint {
  /** The name of the error's class. */
  readonly errorClass: string;
  /** The same for the same task, class and place in the user's code. */
  readonly fingerprint: string;
}

/** Never throws, whatever the error is. */
export function printError(task: string, error: unknown): ErrorPrint {
  const name = peek(error, "name");
  const errorClass = clip((typeof name === "string" && name !== "" ? name : "Error").replaceAll("\u0000", ""), 256);
  const place = topFrame(peek(error, "stack")) ?? withoutNumbers(messageOf(error));
  const fingerprint = createHash("sha1")
    .update(JSON.stringify([task, errorClass, place]))
    .digest("hex")
    .slice(0, 16);
  return { errorClass, fingerprint };
}

/**
 * The first frame that is the user's own: its function and file, so that lines that move with a new build do not make a new group. A function
 * without a name is identified by its line.
 */
function topFrame(stack: unknown): string | undefined {
  if (typeof stack !== "string") return undefined;
  for (const line of stack.split("\n")) {
    const [, name, place] = /^\s+at (?:async )?(?:(.+?) \()?([^()]+?)\)?$/.exec(line) ?? [];
    if (place === undefined || /node:|node_modules|<anonymous>|^native$/.test(place)) continue;
    const [, path = place, lineNumber = ""] = /^(.*?):(\d+):\d+$/.exec(place) ?? [];
    const file = relative(process.cwd(), path.startsWith("file://") ? toPath(path) : path).replaceAll("\\", "/");
    return name !== undefined && !name.includes("<anonymous>") ? `${name} ${file}` : `${file}:${lineNumber}`;
  }
  return undefined;
}

function toPath(url: string): string {
  try {
    return fileURLToPath(url.replace(/\?.*$/, ""));
  } catch {
    return url;
  }
}

/** The message of an error without a stack, without what differs from one time to the next. */
function withoutNumbers(message: string): string {
  return clip(message.replaceAll(/[0-9a-f]{8,}|\d+/gi, "#"), 200);
}
