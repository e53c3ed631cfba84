import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { listFastTests } from "../support/fast-tests.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

test("the fast tests are those without processes, other servers, packages of their own and longer timeouts", () => {
  const names = listFastTests().map((file) => relative(root, file));
  expect(names).toEqual(expect.arrayContaining(["test/client/add-job.test.ts", "test/cron/backfill.test.ts"]));
  for (const slow of [
    "cli/run",
    "chaos/pgbouncer",
    "compat/cron",
    "orms/caller-transaction",
    "worker/claim/claim.property",
  ]) {
    expect(names).not.toContain(`test/${slow}.test.ts`);
  }
});
