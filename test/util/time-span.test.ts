import { expect, test } from "vitest";
import { formatSpan } from "../../src/util/time-span.ts";

test.each([
  [0, "less than a second"],
  [1_000, "1 second"],
  [-35_000, "35 seconds"],
  [60_000, "1 minute"],
  [61_000, "1 minute 1 second"],
  [3_600_000, "1 hour"],
  [3_601_000, "1 hour"],
  [90_000_000, "1 day 1 hour"],
  [200_000_000, "2 days 7 hours"],
])("%d ms are said as '%s'", (ms, text) => expect(formatSpan(ms)).toBe(text));
