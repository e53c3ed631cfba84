import { executorFor } from "../../src/client/transaction/executor-for.ts";
import { statement } from "../../src/db/statement.ts";
import type { TaskHelpers } from "../../src/task.ts";
import { libraries } from "./libraries/all.ts";
import type { OpenLibrary } from "./libraries/library.ts";

const addOne = statement<{ id: number }, object>({
  name: "add_one_to",
  values: ({ id }) => [id],
  text: "update counters set n = n + 1 where id = $1::integer returning n",
});

/** The task `own` of chaos/once-worker.mjs, with the transactions of one of the libraries. */
export function ownWith(name: string, url: string): (payload: unknown, helpers: TaskHelpers) => Promise<void> {
  const library = libraries.find((each) => each.name === name)!;
  const idle: OpenLibrary[] = [];
  return async (_payload, helpers) => {
    const id = Number(helpers.job.id);
    const open = idle.pop() ?? (await library.open(url));
    const done = open.transaction(async (tx) => {
      await executorFor(tx, "public").run(addOne, { id: id % 5_000 });
      if (id % 10 === 0) await helpers.withTransaction(tx).addJob("follow-up", { of: helpers.job.id });
      await helpers.completeIn(tx);
    });
    try {
      // Some libraries never tell that a connection is gone.
      await Promise.race([done, helpers.abortPromise]);
      idle.push(open);
    } catch (error) {
      done.catch(() => undefined);
      open.close().catch(() => undefined);
      throw error;
    }
  };
}
