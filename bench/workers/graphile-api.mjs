import { now } from "../measure/clock.mjs";

/** The adapter for any library with graphile-worker's interface. */
export function graphileAdapter({ run, runMigrations, makeWorkerUtils, Logger }) {
  // Twenty thousand error messages would measure the terminal.
  const logger = new Logger(() => () => undefined);
  const shared = (place) => ({ connectionString: place.connectionString, logger });

  return {
    async install(place, tasks) {
      await runMigrations(shared(place));
      const utils = await makeWorkerUtils(shared(place));
      await utils.withPgClient((client) =>
        client.query(
          "insert into graphile_worker._private_tasks (identifier) select unnest($1::text[]) on conflict do nothing",
          [tasks],
        ),
      );
      await utils.release();
    },

    startWorker({ place, settings, tasks, handler, behaviour }) {
      // The full job is only looked at where the scenario needs the time of the claim.
      const tasksByBehaviour = {
        sleep: (payload, { job }) => handler(payload, job.locked_at?.getTime()),
        heed: (payload, { abortSignal }) => handler(payload, abortSignal),
      };
      const task = tasksByBehaviour[behaviour] ?? ((payload) => handler(payload));
      return run({
        ...shared(place),
        noHandleSignals: true,
        taskList: Object.fromEntries(tasks.map((name) => [name, task])),
        ...settings,
      });
    },

    async openProducer({ place }) {
      const utils = await makeWorkerUtils(shared(place));
      return {
        add: (task, payload) => utils.addJob(task, payload),
        addMany: (task, payloads) => utils.addJobs(payloads.map((payload) => ({ identifier: task, payload }))),
        cancel: (id) => utils.cancelJobs([id], { reason: String(now()) }),
        isRunning: async (id) => (await utils.getJob(id))?.state === "running",
        close: () => utils.release(),
      };
    },
  };
}
