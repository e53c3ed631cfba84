import { expect, test } from "vitest";
import { Lateness } from "../../../src/worker/claim/lateness.ts";

test("more is claimed ahead the more starts in time; after misses nothing is, until four times as many are in time", () => {
  const lateness = new Lateness();
  const first = lateness.ahead;
  for (let n = 0; n < 25; n++) lateness.keptTime(1);
  expect(lateness.ahead).toBe(first + 100);
  // Half as many, until they are as few as at first.
  lateness.missedAhead(50);
  expect(lateness.ahead).toBe(58);
  lateness.missedAhead(50);
  lateness.missedAhead(20);
  expect(lateness.ahead).toBe(first);
  lateness.missedAhead(10);
  for (let n = 0; n < 40; n++) {
    expect(lateness.ahead).toBe(0);
    lateness.keptTime(1);
  }
  expect(lateness.ahead).toBe(first);
  // What has paid for misses does not pay for others; what was in time since then does.
  lateness.missedAhead(1);
  for (let n = 0; n < 4; n++) lateness.keptTime(1);
  expect(lateness.ahead).toBe(first);
  for (let n = 0; n < 4; n++) lateness.keptTime(1);
  lateness.missedAhead(4);
  lateness.missedAhead(1);
  for (let n = 0; n < 4; n++) {
    expect(lateness.ahead).toBe(0);
    lateness.keptTime(1);
  }
});

test("no more is claimed ahead than the pool has been seen to start within a moment", () => {
  const lateness = new Lateness();
  for (let n = 0; n < 5_000; n++) lateness.keptTime(1);
  lateness.pace.begin(0);
  for (let n = 1; n <= 100; n++) lateness.pace.started(n / 10);
  // Ten in a millisecond.
  expect(lateness.ahead).toBe(250);
  expect([lateness.isEnough(125), lateness.isEnough(126)]).toEqual([false, true]);
});

test("where starts may be late, more is claimed ahead, until a start is missed", () => {
  const lateness = new Lateness();
  for (let n = 0; n < 5_000; n++) lateness.keptTime(1);
  lateness.pace.begin(0);
  for (let n = 1; n <= 100; n++) lateness.pace.started(n / 10);
  lateness.granted(100);
  expect(lateness.ahead).toBe(280);
  for (let n = 0; n < 100; n++) lateness.granted(100);
  expect(lateness.ahead).toBe(500);
  for (let n = 0; n < 100; n++) lateness.granted(1_000);
  expect(lateness.ahead).toBe(750);
  lateness.granted(80);
  expect(lateness.ahead).toBe(400);
  lateness.missedAhead(50);
  for (let n = 0; n < 100; n++) lateness.keptTime(1);
  expect(lateness.ahead).toBe(250);
  lateness.granted(10);
  expect(lateness.ahead).toBe(250);
});

test("a task that misses one start after the other asks for more time each time, until it is in time", () => {
  const lateness = new Lateness();
  lateness.missed(7);
  expect(lateness.byTask).toEqual({});
  lateness.missed(7);
  lateness.missed(7);
  expect(lateness.byTask).toEqual({ 7: 200 });
  for (let n = 0; n < 20; n++) lateness.missed(7);
  expect(lateness.byTask).toEqual({ 7: 5_000 });
  lateness.keptTime(7);
  expect(lateness.byTask).toEqual({});
});
