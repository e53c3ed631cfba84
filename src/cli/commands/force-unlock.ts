import { defineCommand } from "../command.ts";
import { databaseFlags, jsonFlag, yesFlag } from "../flags.ts";
import { withUtils } from "../with-utils.ts";

export const forceUnlock = defineCommand({
  command: "force-unlock <workers..>",
  describe: "Free what these workers hold; only for workers that are certainly dead",
  flags: { ...databaseFlags, ...yesFlag, ...jsonFlag },
  positionals: {
    workers: { type: "string", array: true, demandOption: true, describe: "Ids as 'hathi workers' lists them" },
  },
  run: (args, terminal) =>
    withUtils(args, async (utils) => {
      const ids = args.workers.map(String);
      const held = (await utils.listWorkers()).filter((worker) => ids.includes(worker.id));
      const alive = held.filter((worker) => worker.life === "alive");
      if (alive.length > 0 && !args.yes) {
        const question = `${alive.map(({ id }) => id).join(", ")} sends heartbeats: its jobs would run twice. Unlock anyway?`;
        if (!(await terminal.confirm(question))) return 1;
      }
      await utils.forceUnlockWorkers(ids);
      const jobs = held.reduce((sum, worker) => sum + worker.jobs, 0);
      const queues = held.reduce((sum, worker) => sum + worker.queues, 0);
      if (args.json) terminal.printJson({ workers: ids, jobs, queues });
      else
        terminal.print(`Unlocked ${jobs} job${jobs === 1 ? "" : "s"} and ${queues} queue${queues === 1 ? "" : "s"}.`);
      return 0;
    }),
});
