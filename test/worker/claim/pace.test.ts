import { expect, test } from "vitest";
import { Pace } from "../../../src/worker/claim/pace.ts";

function seasoned(jobMs: number, bytes = 1): Pace {
  const pace = new Pace();
  for (let n = 0; n < 1_000; n++) pace.observeJob(jobMs);
  pace.observeClaim(1, bytes);
  return pace;
}

test("nothing is held ahead before a job was seen", () => {
  expect(new Pace().ahead(10, 0)).toBe(0);
  expect(new Pace().inARow(0)).toBe(1);
});

test("as many are held ahead as will start within a moment", () => {
  expect(seasoned(1).ahead(4, 0)).toBe(4 * 25 - 4);
  expect(seasoned(1).inARow(0)).toBe(25);
});

test("slow jobs are not held ahead", () => {
  expect(seasoned(100).ahead(4, 0)).toBe(0);
  expect(seasoned(100).inARow(0)).toBe(1);
});

test("trivial jobs are held ahead up to a limit, and large ones up to a number of bytes", () => {
  expect(seasoned(0).ahead(4, 0)).toBe(2_000);
  expect(seasoned(0, 1024 * 1024).ahead(4, 0)).toBe(2);
});

test("trust grows with the jobs that were seen", () => {
  const pace = new Pace();
  pace.observeJob(0.01);
  expect(pace.ahead(4, 0)).toBe(4);
  pace.observeJob(0.01);
  expect(pace.ahead(4, 0)).toBe(8);
});

test("one slow job is believed at once, many quick ones only slowly", () => {
  const pace = seasoned(1);
  pace.observeJob(101);
  expect(pace.ahead(4, 0)).toBe(0);
  for (let n = 0; n < 20; n++) pace.observeJob(1);
  expect(pace.ahead(4, 0)).toBeLessThan(4);
  for (let n = 0; n < 200; n++) pace.observeJob(1);
  expect(pace.ahead(4, 0)).toBeGreaterThan(90);
});

test("of the first runs the shortest counts", () => {
  const pace = new Pace();
  for (const ms of [80, 1, 60, 70, 90]) pace.observeJob(ms);
  expect(pace.ahead(1, 0)).toBe(20);
});

test("after a stall nothing is held ahead for a second, after a slow queue only one of each queue", () => {
  const pace = seasoned(1);
  pace.observeSlowQueue(0);
  expect([pace.ahead(4, 999), pace.inARow(999), pace.inARow(1_000)]).toEqual([96, 1, 25]);
  pace.observeStall(2_000);
  expect([pace.ahead(4, 2_999), pace.inARow(2_999), pace.ahead(4, 3_000)]).toEqual([0, 1, 96]);
});

test("a job that waited for nothing but the processor does not make all look slow", () => {
  const pace = seasoned(0.1);
  // However long it had none.
  pace.observeJob(60_000, false);
  expect(pace.ahead(10, 0)).toBeGreaterThan(1_500);
  pace.observeJob(101);
  expect(pace.ahead(10, 0)).toBe(0);
  // But many that compute for long do.
  const busy = seasoned(0.1);
  for (let n = 0; n < 20; n++) busy.observeJob(60, false);
  expect(busy.ahead(10, 0)).toBe(0);
});

test("no more are held ahead than were lately started in 100 ms, however quick they are", () => {
  const pace = seasoned(0.01);
  expect(pace.ahead(10, 0)).toBe(2_000);
  pace.observeStarts(300, 60);
  expect(pace.ahead(10, 0)).toBe(500);
  // Nothing was started until the others had to be returned.
  pace.observeStarts(0, 170);
  expect(pace.ahead(10, 0)).toBe(75);
  for (let n = 0; n < 10; n++) pace.observeStarts(75, 2);
  expect(pace.ahead(10, 0)).toBe(2_000);
});

test("starts that take no time say nothing", () => {
  const pace = seasoned(0.01);
  pace.observeStarts(1, 0);
  expect(pace.ahead(10, 0)).toBe(2_000);
});
