import { expect, test } from "vitest";
import type { Mark } from "../../../src/db/statements/claim.ts";
import { Marks } from "../../../src/worker/claim/marks.ts";

const mark = (priority: number, id: string): Mark => [priority, "2026-01-01T00:00:00Z", id];

test("a priority has its latest mark, and one that a claim did not reach keeps its own", () => {
  const marks = new Marks();
  expect(marks.list()).toEqual([]);
  marks.learn([mark(0, "5"), mark(1, "7")]);
  marks.learn([mark(0, "9")]);
  marks.learn([]);
  expect(marks.list()).toEqual([mark(0, "9"), mark(1, "7")]);
});

test("a list that was handed out does not change", () => {
  const marks = new Marks();
  marks.learn([mark(0, "5")]);
  const before = marks.list();
  marks.learn([mark(0, "9")]);
  marks.clear();
  expect(before).toEqual([mark(0, "5")]);
});

test("cleared marks, and more than a hundred, leave a scan from the start", () => {
  const marks = new Marks();
  marks.learn([mark(0, "5")]);
  marks.clear();
  expect(marks.list()).toEqual([]);
  const hundred = Array.from({ length: 100 }, (_, priority) => mark(priority, "1"));
  marks.learn(hundred);
  expect(marks.list()).toHaveLength(100);
  marks.learn([mark(99, "2")]);
  expect(marks.list()).toHaveLength(100);
  marks.learn([mark(100, "1")]);
  expect(marks.list()).toEqual([]);
});
