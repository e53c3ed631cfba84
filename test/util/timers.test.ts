import * as node from "node:timers";
import { expect, onTestFinished, test } from "vitest";
import { clearTimeout, setTimeout } from "../../src/util/timers.ts";

test.each([2 ** 31, Number.MAX_SAFE_INTEGER, Number.POSITIVE_INFINITY])(
  "a wait of %d ms, which Node would end at once, is long",
  async (ms) => {
    let isOver = false;
    const timer = setTimeout(() => (isOver = true), ms);
    onTestFinished(() => clearTimeout(timer));
    await new Promise((resolve) => node.setTimeout(resolve, 5));
    expect(isOver).toBe(false);
  },
);
