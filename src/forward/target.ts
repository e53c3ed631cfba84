import type { ForwardMessage } from "./message.ts";

/**
 * What became of a message. `acked`: the target has it, and the job is done. `retry`: it was refused for now, and the attempt fails. `reject`: the
 * target can never take it, and the job fails permanently. `absent`: the target cannot be reached, or did not say; it is sent again, and uses no attempt.
 */
export type PublishOutcome = "acked" | "retry" | "reject" | "absent";

/** An outcome, with what the target said. */
export interface PublishResult {
  readonly outcome: PublishOutcome;
  readonly reason?: unknown;
}

/** Sends a batch at once and gives an outcome for each message, in their order. Throws if the target cannot be reached: then all are sent again. */
export type Publish = (batch: readonly ForwardMessage[]) => Promise<readonly (PublishOutcome | PublishResult)[]>;

/** Where jobs go. */
export interface Target {
  /** For the log: "NATS", say. */
  readonly name: string;
  readonly publish: Publish;
}

export const acked: PublishResult = { outcome: "acked" };

export function resultOf(outcome: PublishOutcome, reason: unknown): PublishResult {
  return { outcome, reason };
}
