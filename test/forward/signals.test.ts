import { expect, test } from "vitest";
import { builtLibrary } from "../support/built-library.ts";
import { freshDatabase } from "../support/database.ts";
import { startProcess } from "../support/process.ts";

test.each([
  ["SIGTERM", 0],
  ["SIGINT", "SIGINT"],
] as const)(
  "after %s the process waits for the answer of the target, and leaves no job locked",
  async (signal, end) => {
    const db = await freshDatabase();
    await db.query("select graphile_worker.add_job('mail/send') from generate_series(1, 3)");
    const worker = startProcess("../forward/signals-process.mjs", [builtLibrary(), db.url]);
    await worker.says(/publishing/);
    worker.kill(signal);
    await worker.says(/Waiting for jobs that are being forwarded/);
    worker.send("answer");
    expect(await worker.ended).toBe(end);
    expect(worker.output()).toMatch(/ended/);
    expect(await db.jobs()).toEqual([]);
  },
);
