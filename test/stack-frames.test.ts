import { expect, test } from "vitest";
import { stackFrames } from "../src/stack-frames.ts";
import { isOwnFrame } from "../src/util/stack-frame.ts";

function withStack(message: string, lines: readonly string[], further: object = {}): Error {
  return Object.assign(new Error(message), { stack: [`Error: ${message}`, ...lines].join("\n") }, further);
}

test("the frames of an error and of its causes are kept, without the error's message", () => {
  const cause = withStack("socket closed\nby peer", ["    at read (/app/db.js:3:1)"]);
  const joined = withStack("one of many", ["    at item (/app/item.js:9:9)"]);
  const error = withStack("password is hunter2", ["    at charge (/app/charge.js:1:2)", "    at node:internal:1:1"], {
    cause,
    errors: [joined, "plain"],
  });
  expect(stackFrames(error)).toBe(
    [
      "    at charge (/app/charge.js:1:2)",
      "    at node:internal:1:1",
      "  cause: Error: socket closed",
      "      at read (/app/db.js:3:1)",
      "  error: Error: one of many",
      "      at item (/app/item.js:9:9)",
      "  error: plain",
    ].join("\n"),
  );
});

test("a stack is cut at its end, between lines, to 4 kB", () => {
  const lines = Array.from({ length: 5_000 }, (_, n) => `    at häufig${n} (/app/deep.js:${n}:1)`);
  const kept = stackFrames(withStack("x".repeat(100_000), lines))!;
  expect(Buffer.byteLength(kept)).toBeLessThanOrEqual(4_096);
  expect(Buffer.byteLength(kept)).toBeGreaterThan(4_000);
  expect(lines.slice(0, kept.split("\n").length)).toEqual(kept.split("\n"));
});

test("whatever was thrown, nothing is thrown again, and what PostgreSQL cannot keep is left out", () => {
  const circular = withStack("a", ["    at a (/app/a.js:1:1)\u0000"]);
  circular.cause = Object.assign(withStack("b", []), { cause: circular });
  expect(stackFrames(circular)).toBe("    at a (/app/a.js:1:1)\n  cause: Error: b");
  const hostile = new Proxy(new Error("x"), {
    get() {
      throw new Error("no");
    },
  });
  const list = Object.assign(withStack("x", []), { errors: new Proxy([], { get: () => 1 / 0 }) });
  for (const thrown of [hostile, list, "text", null, undefined, 7, withStack("no frames", [])]) {
    expect(stackFrames(thrown)).toBeNull();
  }
});

test("frames of packages and of Node are not the application's own", () => {
  const own = [
    "    at Object.<anonymous> (/app/x.js:1:1)",
    "    at async file:///app/y.mjs:2:3",
    "    at z (C:\\app\\z.js:1:1)",
  ];
  const others = [
    "    at f (/app/node_modules/pg/lib/client.js:1:1)",
    "    at node:internal/process/task_queues:95:5",
    "    at Array.map (<anonymous>)",
    "  cause: Error: x",
  ];
  expect([own.map(isOwnFrame), others.map(isOwnFrame)]).toEqual([own.map(() => true), others.map(() => false)]);
});
