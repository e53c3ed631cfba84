import type { ForwardMessage } from "./message.ts";
import { acked, type PublishResult, resultOf } from "./target.ts";

/**
 * Makes what is sent of each message, and sends it. The user's own functions take part in the making: a message for which they throw has failed, and
 * the others go.
 */
export async function publishMade<Made>(
  batch: readonly ForwardMessage[],
  make: (message: ForwardMessage) => Made,
  send: (made: readonly Made[]) => Promise<readonly PublishResult[]>,
): Promise<PublishResult[]> {
  const made: Made[] = [];
  const failures = batch.map((message) => {
    try {
      made.push(make(message));
      return undefined;
    } catch (error) {
      return resultOf("retry", error);
    }
  });
  const sent = made.length > 0 ? await send(made) : [];
  let next = 0;
  return failures.map((failure) => failure ?? sent[next++]!);
}

/** Sends all at once. If the target answers that something among it cannot be taken, sends each half, and so on, until that is alone. */
export async function isolate<Made>(
  made: readonly Made[],
  send: (made: readonly Made[]) => Promise<unknown>,
  judge: (error: unknown) => PublishResult,
): Promise<PublishResult[]> {
  try {
    await send(made);
    return made.map(() => acked);
  } catch (error) {
    const result = judge(error);
    if (made.length === 1 || result.outcome === "absent") return made.map(() => result);
    const middle = made.length >> 1;
    const first = await isolate(made.slice(0, middle), send, judge);
    return [...first, ...(await isolate(made.slice(middle), send, judge))];
  }
}
