import { run as runWorker } from "../../index.ts";
import { defineCommand } from "../command.ts";
import { deferToWorker } from "../defer-signals.ts";
import { databaseFlags } from "../flags.ts";
import { resolveOptions } from "../resolve-options.ts";
import { UsageError } from "../usage-error.ts";

export const forward = defineCommand({
  command: "forward",
  describe: "Forward jobs to a broker with 'forward' of the config file, and run no tasks",
  flags: databaseFlags,
  async run(args, terminal) {
    const resolved = await resolveOptions(args);
    const signals = deferToWorker(() => resolved.connection.release());
    try {
      const { options } = resolved;
      if (!forwards(options.preset)) {
        throw new UsageError(
          "Nothing to forward: put 'forward: [forward({ tasks, to })]' into 'worker' of graphile.config.",
        );
      }
      terminal.note(`Using ${resolved.connection.description}.`);
      const runner = await runWorker({ ...options, taskList: {}, parsedCronItems: [] });
      signals.handOver();
      await runner.promise;
      return Number(process.exitCode ?? 0);
    } finally {
      await resolved.connection.release();
    }
  },
});

function forwards(preset: GraphileConfig.Preset): boolean {
  const { extends: parents = [], worker } = preset;
  return worker?.forward !== undefined || parents.some(forwards);
}
