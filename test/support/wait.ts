import { sleep } from "../../src/util/sleep.ts";

/** Asks again until the answer is truthy, and gives it; fails with what was waited for when the deadline has passed. */
export async function until<T>(
  fact: () => T | Promise<T>,
  { what = fact.toString(), withinMs = 20_000 }: { what?: string; withinMs?: number } = {},
): Promise<Exclude<Awaited<T>, null | undefined | false | 0 | "">> {
  const deadline = Date.now() + withinMs;
  for (let restMs = 5; ; restMs = Math.min(restMs * 2, 100)) {
    const answer = await fact();
    if (answer) return answer as Exclude<Awaited<T>, null | undefined | false | 0 | "">;
    if (Date.now() > deadline) throw new Error(`Waited ${withinMs} ms in vain until ${what}`);
    await sleep(restMs);
  }
}
