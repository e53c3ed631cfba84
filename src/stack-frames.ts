import { errorTitle } from "./error-text.ts";
import { clip } from "./util/clip.ts";
import { peek } from "./util/plain.ts";
import { isFrame } from "./util/stack-frame.ts";

/** What history keeps of a stack takes this many bytes at most; its head is kept, which is nearest to the failure. */
const maxBytes = 4_096;
const maxLineBytes = 512;
const maxDepth = 4;

/**
 * Where an error was thrown: the frames of its stack, and below them those of its causes. Without the message, which is kept beside it.
 * Null if nothing has a stack. Never throws, whatever the error is.
 */
export function stackFrames(error: unknown): string | null {
  const kept: string[] = [];
  let room = maxBytes;
  let hasFrames = false;
  for (const line of linesOf(error)) {
    const text = clip(line.replaceAll("\u0000", ""), maxLineBytes);
    room -= Buffer.byteLength(text) + 1;
    if (room < 0) break;
    hasFrames ||= isFrame(text);
    kept.push(text);
  }
  return hasFrames ? kept.join("\n") : null;
}

function* linesOf(error: unknown, depth = 0, parents: readonly unknown[] = []): Generator<string> {
  const indent = "  ".repeat(depth);
  const stack = peek(error, "stack");
  if (typeof stack === "string") for (const line of stack.split("\n")) if (isFrame(line)) yield indent + line;
  if (depth === maxDepth) return;
  const above = [...parents, error];
  const cause = peek(error, "cause");
  const errors = peek(error, "errors");
  const below = [...(cause ? [["cause", cause]] : []), ...safeItems(errors).map((item) => ["error", item])];
  for (const [label, inner] of below) {
    if (above.includes(inner)) continue;
    yield `${indent}  ${String(label)}: ${errorTitle(inner).split("\n", 1)[0]!}`;
    yield* linesOf(inner, depth + 1, above);
  }
}

function safeItems(list: unknown): unknown[] {
  try {
    return Array.isArray(list) ? Array.from(list.slice(0, 8)) : [];
  } catch {
    return [];
  }
}
