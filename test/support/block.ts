/**
 * Keeps the event loop to itself, as a task that computes does. It sleeps instead of computing, so that the processor is free for other tests;
 * the worker sees no difference, since all it has is the clock.
 */
export function blockEventLoop(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
