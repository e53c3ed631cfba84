import fc from "fast-check";
import { expect, test } from "vitest";
import { Fifo } from "../../src/util/fifo.ts";

test("what goes in first comes out first, and an item put at the front comes out next", () => {
  const line = new Fifo<number>();
  for (const item of [1, 2, 3]) line.push(item);
  expect(line.shift()).toBe(1);
  line.pushFront(0);
  expect(line.items()).toEqual([0, 2, 3]);
  expect(line.drain()).toEqual([0, 2, 3]);
  expect(line.length).toBe(0);
  expect(line.shift()).toBeUndefined();
});

test("it behaves like an array, however long it grows and however often it is emptied", () => {
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.record({ do: fc.constant("push" as const), count: fc.nat(900) }) },
    { weight: 4, arbitrary: fc.record({ do: fc.constant("shift" as const), count: fc.nat(900) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant("pushFront" as const), count: fc.nat(3) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("drain" as const), count: fc.constant(1) }) },
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const line = new Fifo<number>();
      const model: number[] = [];
      let next = 0;
      for (const { do: action, count } of steps) {
        for (let n = 0; n < count; n++) {
          if (action === "push") model.push(next);
          if (action === "pushFront") model.unshift(next);
          if (action === "push" || action === "pushFront") line[action](next++);
          if (action === "shift") expect(line.shift()).toBe(model.shift());
          if (action === "drain") expect(line.drain()).toEqual(model.splice(0));
        }
        expect(line.length).toBe(model.length);
        expect(line.items()).toEqual(model);
      }
    }),
    { numRuns: 50 },
  );
});
