import { expect, test } from "vitest";
import { Pulse } from "../../src/util/pulse.ts";

test("a wait of years does not end at once", async () => {
  const pulse = new Pulse();
  const ending = new AbortController();
  let hasEnded = false;
  const waiting = pulse.wait(1e12, ending.signal).then(() => {
    hasEnded = true;
  });
  // A timer that overflows fires after 1 ms, so before this one.
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(hasEnded).toBe(false);
  pulse.nudge();
  await waiting;
});
