import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { hasProgram } from "../support/has-program.ts";
import { accounts } from "./account.ts";
import { cloneFor } from "./clone.ts";
import { stop } from "./follow.ts";
import { type } from "./shell.ts";

vi.setConfig({ testTimeout: 240_000 });

const hasGit = hasProgram("git");

test.for(accounts)(
  "the README's first command shows a job and the dashboard's address in a fresh clone, and Ctrl-C ends all, for $name",
  async (account, { skip }) => {
    skip(!hasGit, "git is not installed here, so there is no fresh clone");
    const { folder, home, commands } = await cloneFor(account);
    const first = type(commands[0]!, { cwd: folder, home, uid: account.uid });
    await first.says(/Hello, world!/);
    await first.says(/Completed task \d+ \(greet, .*ms\) with success/);
    const [address = ""] = /http:\/\/127\.0\.0\.1:\d+\/\?token=\S+/.exec(first.output()) ?? [];
    expect((await fetch(address, { redirect: "manual" })).status).toBe(303);

    const code = await stop(first, join(folder, "examples/quick-start/.hathi"));
    expect(first.output()).toMatch(/Stopping: .*\nStopped\.\n$/);
    // The program ends with 0; of a script that Ctrl-C has ended npm itself may say 130.
    expect([0, 130]).toContain(code);
  },
);
