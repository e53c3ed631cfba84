import { now, sleep } from "../measure/clock.mjs";

/** Puts jobs in, in one of the ways a scenario may ask for, and says how long that took. */
export async function produce(producer, { mode, task = "job", ...request }) {
  const startedAt = now();
  const added = await modes[mode](producer, task, request);
  return { added, ms: now() - startedAt };
}

const modes = {
  /** `inFlight` loops, each with one add under way; 1 means one at a time. */
  async single(producer, task, { inFlight, forMs, count = Number.POSITIVE_INFINITY }) {
    await producer.add(task, { i: -1 });
    const until = now() + forMs;
    let added = 1;
    const loop = async () => {
      while (now() < until && added < count) {
        await producer.add(task, { i: added++ });
      }
    };
    await Promise.all(Array.from({ length: inFlight }, loop));
    return added;
  },

  /** With `ms`, jobs that work for so long. */
  async batches(producer, task, { count, batchSize, ms, ...options }) {
    for (let added = 0; added < count; added += batchSize) {
      const size = Math.min(batchSize, count - added);
      await producer.addMany(
        task,
        Array.from({ length: size }, (_, i) => ({ i: added + i, ...(ms && { ms }) })),
        options,
      );
    }
    return count;
  },

  /** One job at a time with a rest in between, each carrying the moment its add began. */
  async spaced(producer, task, { count, restMs }) {
    for (let added = 0; added < count; added++) {
      await sleep(restMs * (0.5 + Math.random()));
      await producer.add(task, { at: now() });
    }
    return count;
  },

  /** Jobs that are cancelled one after the other, with a rest in between, once all of them run. */
  async cancelled(producer, task, { count, restMs }) {
    const ids = [];
    for (let added = 0; added < count; added++) ids.push((await producer.add(task, {})).id);
    for (const id of ids) while (!(await producer.isRunning(id))) await sleep(10);
    await sleep(100);
    for (const id of ids) {
      await producer.cancel(id);
      await sleep(restMs * (0.5 + Math.random()));
    }
    return count;
  },

  /** A steady stream that does not slow down when the queue does. */
  async steady(producer, task, { count, perSecond }) {
    const startedAt = now();
    const adds = [];
    for (let due = 0; adds.length < count; ) {
      due = Math.min(count, Math.ceil(((now() - startedAt) / 1000) * perSecond));
      while (adds.length < due) adds.push(producer.add(task, { at: now() }));
      await sleep(1);
    }
    await Promise.all(adds);
    return count;
  },
};
