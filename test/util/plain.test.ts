import { expect, test } from "vitest";
import { toPlain } from "../../src/util/plain.ts";

const circular: { name: string; self?: unknown } = { name: "loop" };
circular.self = circular;
const revoked = Proxy.revocable({}, {});
revoked.revoke();

test.each([
  [
    "data",
    { a: [1, "two", null, true], at: new Date(0) },
    { a: [1, "two", null, true], at: "1970-01-01T00:00:00.000Z" },
  ],
  [
    "what JSON cannot hold",
    { n: 10n, s: Symbol("s"), f: () => 1, x: NaN },
    { n: "10", s: "Symbol(s)", f: "[function]", x: "NaN" },
  ],
  ["a circle", circular, { name: "loop", self: "[circular]" }],
  ["the same object twice, which is no circle", [circular.name, [revoked.proxy]], ["loop", ["[unreadable]"]]],
  [
    "a getter that throws",
    {
      fine: 1,
      get bad(): never {
        throw new Error("no");
      },
    },
    { fine: 1, bad: "[unreadable]" },
  ],
  ["an object without a prototype", Object.assign(Object.create(null) as object, { a: 1 }), { a: 1 }],
])("a copy holds %s", (_what, value, expected) => {
  expect(toPlain(value)).toEqual(expected);
  expect(JSON.parse(JSON.stringify(toPlain(value)))).toEqual(expected);
});

test("a copy is bounded in depth, in width and in the length of its strings", () => {
  let deep: object = { end: true };
  for (let level = 0; level < 1_000; level++) deep = { deep };
  const wide = Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`key${index}`, { index }]));
  const value = { deep, wide, many: Array(1_000_000).fill({ a: 1 }), long: "x".repeat(10_000_000) };
  const json = JSON.stringify(toPlain(value));
  expect(json.length).toBeLessThan(50_000);
  expect(json).toContain("9950 more");
  expect(json).toContain("characters cut");
});
