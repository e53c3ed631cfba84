import { now } from "../measure/clock.mjs";
import { makeHandlers } from "./handlers.mjs";
import { produce } from "./produce.mjs";

/**
 * Turns an adapter into a process that the benchmark can steer.
 *
 * An adapter has `install(place)`, `startWorker({ place, settings, tasks, handler, behaviour })` → `{ stop() }` and
 * `openProducer({ place })` → `{ add(task, payload), addMany(task, payloads, options), close() }`.
 */
export function serve(adapter) {
  const { record, handlers } = makeHandlers();
  let worker;
  let reported = 0;

  const commands = {
    install: ({ place, tasks }) => adapter.install(place, tasks),
    async start({ place, settings, tasks, behaviour }) {
      const calledAt = now();
      worker = await adapter.startWorker({ place, settings, tasks, behaviour, handler: handlers[behaviour] });
      if (typeof worker?.stop !== "function") throw new Error("Starting a worker gave nothing that can be stopped.");
      record.readyAt = Date.now();
      return { calledAt, readyAt: now() };
    },
    async stop() {
      const calledAt = now();
      await worker?.stop();
      worker = undefined;
      return { ms: now() - calledAt };
    },
    async produce(request) {
      const producer = await adapter.openProducer(request);
      try {
        return await produce(producer, request);
      } finally {
        await producer.close();
      }
    },
    usage: () => ({
      cpuMs: cpuMs(),
      rssMb: process.memoryUsage.rss() / 2 ** 20,
      peakMb: process.resourceUsage().maxRSS / 1024,
    }),
    record: () => record,
    ran: () => record.ran,
    reset() {
      Object.assign(record, { ran: 0, firstAt: undefined, latencies: [], spans: [] });
      reported = 0;
    },
  };

  const answer = async ({ id, command, args }) => {
    try {
      process.send({ id, result: await commands[command](args) });
    } catch (error) {
      process.send({ id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) });
    }
  };
  process.on("message", (message) => void answer(message));
  process.on("disconnect", () => process.exit());
  setInterval(() => {
    if (record.ran === reported) return;
    reported = record.ran;
    process.send({ progress: { ran: reported, firstAt: record.firstAt } });
  }, 5);
  process.send({ ready: true });
}

function cpuMs() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
