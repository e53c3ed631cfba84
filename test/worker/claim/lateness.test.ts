import { expect, test } from "vitest";
import { Lateness } from "../../../src/worker/claim/lateness.ts";

test("more is claimed ahead the more starts in time; after misses nothing is, until four times as many have", () => {
  const lateness = new Lateness();
  const first = lateness.ahead;
  for (let n = 0; n < 100; n++) lateness.keptTime(1);
  expect(lateness.ahead).toBe(first + 100);
  lateness.missedAhead(50);
  for (let n = 0; n < 200; n++) {
    expect(lateness.ahead).toBe(0);
    lateness.keptTime(1);
  }
  expect(lateness.ahead).toBe(first);
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
