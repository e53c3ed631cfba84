import { cpSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type Installed, installCopy } from "../support/installed.ts";
import { startCommand } from "../support/program.ts";

// Each test starts several processes, and the machine may be busy.
vi.setConfig({ testTimeout: 120_000 });

const example = fileURLToPath(new URL("../../examples/quick-start", import.meta.url));

let installed: Installed;
beforeAll(() => {
  installed = installCopy({ embedded: true });
  // Its data stay out of the repository.
  const isOurs = (path: string): boolean => !path.startsWith(join(example, ".hathi"));
  cpSync(example, join(installed.folder, "example"), { recursive: true, filter: isOurs });
});
afterAll(() => installed.remove());

test.each(["SIGINT", "SIGTERM"] as const)(
  "the quick start shows a job being executed, and %s drains it",
  async (signal) => {
    const start = join(installed.folder, "example/start.mjs");
    const program = startCommand(process.execPath, [start], { cwd: dirname(start) });
    await program.says(/psql "postgres:\/\//);
    const [, address = ""] = await program.says(/(http:\/\/127\.0\.0\.1:\d+\/\?token=\S+)/);
    const landed = await fetch(address, { redirect: "manual" });
    expect([landed.status, landed.headers.getSetCookie().length]).toEqual([303, 1]);
    await program.says(/Hello, world!/);
    await program.says(/Completed task \d+ \(greet, .*ms\) with success/);
    program.kill(signal);
    expect(await program.ended).toMatchObject({ code: 0, signal: null, stdout: expect.stringMatching(/Stopped\.\n$/) });
  },
);
