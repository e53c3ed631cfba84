import { expectTypeOf, test } from "vitest";
import { z } from "zod";
import { defineTask, type QueueUtils, type TaskResult } from "../../src/index.ts";

/*
 * Nothing here runs: `tsc` is the judge.
 */

declare const utils: QueueUtils;

const report = defineTask({
  identifier: "report",
  payload: z.object({ month: z.string() }),
  keepResult: true,
  run: async ({ month }) => ({
    month,
    at: new Date(),
    rows: [1, 2] as readonly number[],
    note: undefined as string | undefined,
  }),
});
const sum = defineTask({ identifier: "sum", keepResult: true, run: (payload: { a: number }) => payload.a });
const silent = defineTask({ identifier: "silent", keepResult: true, run: async () => {} });
const unkept = defineTask({ identifier: "unkept", run: () => 7 });
const explicit = defineTask<{ to: string }>({ identifier: "explicit", keepResult: true, run: ({ to }) => to });

const neverRun = (check: () => unknown): void => void check;

test("a wait has the type of what the task returns, as JSON has it", () => {
  type Report = { month: string; at: string; rows: number[]; note: string | undefined };
  expectTypeOf<TaskResult<typeof report>>().toEqualTypeOf<Report>();
  neverRun(() => {
    expectTypeOf(utils.addJobAndWait(report, { month: "1" })).resolves.toEqualTypeOf<Report>();
    expectTypeOf(utils.addJobAndWait(sum, { a: 1 }, { timeout: "1m", priority: 2 })).resolves.toEqualTypeOf<number>();
    expectTypeOf(utils.addJobAndWait(silent, undefined)).resolves.toEqualTypeOf<null>();
    expectTypeOf(utils.addJobAndWait(unkept, {})).resolves.toEqualTypeOf<number | undefined>();
    expectTypeOf(utils.addJobAndWait(explicit, { to: "x" })).resolves.toBeUnknown();
    expectTypeOf(utils.addJobAndWait("by name", {})).resolves.toBeUnknown();
    expectTypeOf(utils.waitForJob(1)).resolves.toBeUnknown();
    expectTypeOf(utils.waitForJob<typeof sum>(1)).resolves.toEqualTypeOf<number>();
    // @ts-expect-error the payload does not fit
    void utils.addJobAndWait(sum, { b: 1 });
  });
});
