import { expect, test } from "vitest";
import { accounts } from "./account.ts";
import { cloneFor } from "./clone.ts";
import { type } from "./shell.ts";

/* Not one of the tests that it runs: 'npm run follow' is how to have it. */

test.each(accounts)(
  "the README's second command passes in a fresh clone, for $name",
  { timeout: 3_600_000 },
  async (account) => {
    const { folder, home, commands } = await cloneFor(account);
    const second = type(commands[1]!, { cwd: folder, home, uid: account.uid, isShown: true });
    expect(await second.ended).toBe(0);
  },
);
