import { expect, test } from "vitest";
import { metaFields, metaText } from "../src/log-meta.ts";

const job = { id: "17", task_identifier: "send" };

test.each<[string, string, Record<string, unknown>, string]>([
  ["nothing", "Hello", {}, ""],
  [
    "plain values",
    "Sent",
    { to: "ada@example.org", count: 3, ok: true, none: null },
    " to=ada@example.org count=3 ok=true none=null",
  ],
  ["strings with blanks", "Sent", { subject: 'Say "hi" now' }, ' subject="Say \\"hi\\" now"'],
  ["objects", "Sent", { parts: [1, { a: "b" }] }, ' parts=[1,{"a":"b"}]'],
  ["an error that the message does not name", "Not sent", { error: new Error("no paper") }, ' error="no paper"'],
  ["an error that the message names", "Not sent: no paper", { error: new Error("no paper") }, ""],
  [
    "the cause that the message leaves out",
    "Not sent: no paper",
    { error: new Error("no paper", { cause: new Error("no trees") }) },
    " (cause: Error: no trees)",
  ],
  ["a job that the message names", "Lost task 17 (send)", { job }, ""],
  ["how a job ended, which the message says", "Completed task 17", { job, success: true, duration: 3 }, ""],
  ["a pool and a client, which are noise", "Hello", { pgPool: {}, client: {} }, ""],
])("behind the message of a text log stands %s", (_what, message, meta, expected) => {
  expect(metaText(message, meta)).toBe(expected);
});

test("the details of a text line are bounded, and stay on the line", () => {
  const text = metaText("Hello", { long: "x y\n".repeat(1_000_000), error: new Error("one\ntwo\n  three") });
  expect(text.length).toBeLessThan(2_000);
  expect(text).not.toContain("\n");
});

test("the details of a JSON line hold errors with their causes, bounded, and no connections", () => {
  const error = new TypeError("fetch failed", { cause: Object.assign(new Error("refused"), { code: "ECONNREFUSED" }) });
  const fields = metaFields({ error, workerPool: {}, nested: { error, text: "x".repeat(100_000) } });
  const described = { name: "TypeError", message: "fetch failed", cause: { message: "refused", code: "ECONNREFUSED" } };
  expect(fields).toMatchObject({ error: described, nested: { error: described } });
  expect(JSON.parse(JSON.stringify(fields))).not.toHaveProperty("workerPool");
  expect(JSON.stringify(fields).length).toBeLessThan(30_000);
});
