import { now, sleep } from "./clock.mjs";

/** Lets one process add jobs, and waits until another has started them all. */
export async function addAndWait(worker, producer, place, request) {
  await producer.call("produce", { place: place.address, ...request });
  const until = now() + 10_000;
  for (;;) {
    const ran = await worker.call("ran");
    if (ran >= request.count) return;
    if (now() > until)
      throw new Error(`Only ${ran} of ${request.count} jobs had started 10 s after the last was added.`);
    await sleep(10);
  }
}
