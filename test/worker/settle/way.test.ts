import pg from "pg";
import { expect, onTestFinished, test, vi } from "vitest";
import { freshDatabase } from "../../support/database.ts";
import { startWorker } from "../kit.ts";

/** The files of the worker that have called what runs now, down to the database; the outermost first. */
function filesOnStack(): string[] {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 100;
  const frames = [...new Error().stack!.matchAll(/\/src\/((?:worker|db)\/[\w/-]+\.ts)/g)];
  Error.stackTraceLimit = stackTraceLimit;
  const files = frames.map(([, file]) => file!).toReversed();
  const crossed = files.filter((file, index) => file !== files[index - 1]);
  const door = crossed.indexOf("db/database.ts");
  return door < 0 ? crossed : crossed.slice(0, door + 1);
}

const down = [
  "worker/run/dispatcher.ts",
  "worker/run/ends.ts",
  "worker/settle/settler.ts",
  "worker/settle/announce.ts",
];
const out = ["worker/settle/settle-lane.ts", "worker/settle/batch-writer.ts", "db/database.ts"];

test.each([
  ["succeeds", "complete_jobs", {}],
  ["succeeds in a queue", "complete_jobs", { queueName: "q" }],
  ["fails", "fail_jobs", { maxAttempts: 1 }],
])("the way of a job that %s crosses each file once, to the statement that writes it", async (how, name, spec) => {
  const db = await freshDatabase();
  const ways = new Map<string, string[]>();
  const send = pg.Client.prototype.query;
  const spy = vi.spyOn(pg.Client.prototype, "query");
  spy.mockImplementation(function (this: pg.Client, ...args: [{ name?: string }]) {
    if (args[0].name?.startsWith(name)) ways.set("written", filesOnStack());
    return Reflect.apply(send, this, args);
  } as never);
  onTestFinished(() => spy.mockRestore());
  const worker = await startWorker(db, {
    t: () => {
      if (how === "fails") throw new Error("no");
    },
  });
  const { events } = worker.runner;
  for (const event of ["job:success", "job:failed"] as const)
    events.on(event, () => void ways.set("ended", filesOnStack()));
  await worker.runner.addJob("t", {}, spec);
  await worker.completed(1);
  expect(ways).toEqual(
    new Map([
      ["ended", down],
      ["written", out],
    ]),
  );
});
