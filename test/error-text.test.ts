import { expect, test } from "vitest";
import { errorFields, errorStack, errorText } from "../src/error-text.ts";
import { ConfigError, toError } from "../src/errors.ts";

const refused = Object.assign(new Error("nothing listens"), { code: "ECONNREFUSED" });

test.each<[string, unknown, string]>([
  ["a plain error", new Error("boom"), "boom"],
  ["an error of several lines", new Error("one\ntwo"), "one\ntwo"],
  [
    "a cause",
    new TypeError("fetch failed", { cause: refused }),
    "fetch failed\n  cause: Error: nothing listens\n    code: ECONNREFUSED",
  ],
  ["a cause that the message repeats", new Error("No answer: boom!", { cause: new Error("boom") }), "No answer: boom!"],
  ["a cause that is part of a word", new Error("inner", { cause: new Error("in") }), "inner\n  cause: Error: in"],
  ["a cause that is no error", new Error("no", { cause: { status: 503 } }), 'no\n  cause: {"status":503}'],
  ["a code", Object.assign(new Error("duplicate key"), { code: "23505" }), "duplicate key\n  code: 23505"],
  ["a code that the message has", Object.assign(new Error("open ENOENT"), { code: "ENOENT" }), "open ENOENT"],
  ["an error of ours, whose message says it all", new ConfigError("Bad option."), "Bad option."],
  [
    "joined errors",
    new AggregateError([new Error("one"), new RangeError("two", { cause: "why" })], "both failed"),
    "both failed\n  error: Error: one\n  error: RangeError: two\n    cause: why",
  ],
  ["a thrown object", { code: 42 }, 'Non-error thrown: {"code":42}'],
  ["a thrown object with a message", { message: "odd", code: 42, at: { x: 1 } }, 'odd\n  code: 42\n  at: {"x":1}'],
])("the text of %s is its message, and below it what the message does not say", (_what, thrown, expected) => {
  expect(errorText(toError(thrown))).toBe(expected);
});

test("a circle of causes ends where it began", () => {
  const first: Error & { cause?: unknown } = new Error("first");
  first.cause = new Error("second", { cause: first });
  expect(errorText(first)).toBe("first\n  cause: Error: second");
});

test("a long chain and a large family of causes are cut, and the text says so", () => {
  let chain = new Error("innermost");
  for (let level = 0; level < 1_000; level++) chain = new Error(`level ${level}`, { cause: chain });
  expect(errorText(chain).split("\n")).toHaveLength(9);
  expect(errorText(chain)).toMatch(/and 1 more$/);
  const family = new AggregateError(
    Array.from({ length: 1_000 }, (_, index) => new Error(`member ${index}`)),
    "all failed",
  );
  expect(errorText(family).split("\n")).toHaveLength(33);
  expect(errorText(family)).toMatch(/and 969 more$/);
});

test("a text takes 64 kB at most, whose first and last characters are those of the whole", () => {
  const error = new Error(`BEGIN${"é".repeat(10_000_000)}`, { cause: new Error("the end") });
  for (const text of [errorText(error), errorStack(error)]) {
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(65_536);
    expect(text).toMatch(/^(Error: )?BEGINé/);
    expect(text).toContain("cause: Error: the end");
  }
  expect(JSON.stringify(errorFields(error)).length).toBeLessThan(65_536);
});

test("stacks of causes and of joined errors are shown, each once", () => {
  const inner = new Error("inner");
  const joined = new AggregateError([new Error("one", { cause: inner })]);
  const text = errorStack(new Error("outer", { cause: joined }));
  for (const title of ["Error: outer", "error: Error: one", "cause: Error: inner"]) {
    expect(text.split(`${title}\n`), title).toHaveLength(2);
  }
  expect(text.match(/error-text\.test\.ts/g)!.length).toBeGreaterThanOrEqual(3);
});

test("for JSON an error is an object with its code, its cause and its errors, without what clients hang on it", () => {
  const error = Object.assign(new Error("no", { cause: refused }), { code: "E_NO", config: { password: "secret" } });
  expect(errorFields(new AggregateError([error], "all"))).toEqual({
    name: "AggregateError",
    message: "all",
    stack: expect.stringContaining("error-text.test.ts"),
    errors: [
      {
        name: "Error",
        message: "no",
        code: "E_NO",
        stack: expect.any(String),
        cause: { name: "Error", message: "nothing listens", code: "ECONNREFUSED", stack: expect.any(String) },
      },
    ],
  });
});
