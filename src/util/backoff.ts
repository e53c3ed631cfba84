export interface Backoff {
  readonly minMs: number;
  readonly maxMs: number;
  readonly factor: number;
}

/** Milliseconds to wait before try number `attempt` (from 0), spread by half so that many processes do not come back at once. */
export function backoffMs({ minMs, maxMs, factor }: Backoff, attempt: number, random = Math.random()): number {
  return Math.min(maxMs, minMs * factor ** attempt) * (0.5 + random);
}
