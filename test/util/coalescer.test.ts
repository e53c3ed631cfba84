import { expect, test } from "vitest";
import { Coalescer } from "../../src/util/coalescer.ts";
import { deferred } from "../../src/util/deferred.ts";

test("what is asked for in one breath, or during a write, goes out together", async () => {
  const writes: number[][] = [];
  const gate = deferred();
  const coalescer = new Coalescer<number, number>(async (items) => {
    writes.push([...items]);
    if (writes.length === 1) await gate.promise;
    return items.map((item) => item * 10);
  });
  const first = [coalescer.add(1), coalescer.add(2)];
  await Promise.resolve();
  const second = [coalescer.add(3), coalescer.add(4)];
  gate.resolve();
  expect(await Promise.all([...first, ...second])).toEqual([10, 20, 30, 40]);
  expect(writes).toEqual([
    [1, 2],
    [3, 4],
  ]);
});

test("a write takes no more than its limit", async () => {
  const sizes: number[] = [];
  const coalescer = new Coalescer<number, number>(async (items) => {
    sizes.push(items.length);
    return [...items];
  }, 4);
  await Promise.all(Array.from({ length: 10 }, (_, index) => coalescer.add(index)));
  expect(sizes).toEqual([4, 4, 2]);
});

test("a failed write fails its own callers, and the next one goes on", async () => {
  let fail = true;
  const coalescer = new Coalescer<number, number>(async (items) => {
    if (fail) throw new Error("no");
    return [...items];
  });
  const results = await Promise.allSettled([coalescer.add(1), coalescer.add(2)]);
  expect(results.map((result) => result.status)).toEqual(["rejected", "rejected"]);
  fail = false;
  expect(await coalescer.add(3)).toBe(3);
});

test("a result may be a promise that decides over its own caller only", async () => {
  const coalescer = new Coalescer<number, number>(async (items) =>
    items.map((item) => (item === 2 ? Promise.reject(new Error("not this one")) : item)),
  );
  const results = await Promise.allSettled([coalescer.add(1), coalescer.add(2), coalescer.add(3)]);
  expect(results.map((result) => result.status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
});
