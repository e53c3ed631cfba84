import type { Socket } from "node:net";
import { sleep } from "../../src/util/sleep.ts";

/** What a network does to everything that passes. */
export interface Weather {
  lagMs: number;
  /** Bytes that pass at a time, one portion every millisecond. */
  dripBytes: number;
}

/** Gives a function that writes to this socket as the weather allows, in order. */
export function makeSpout(socket: Socket, weather: Weather): (data: Buffer) => void {
  let waiting = 0;
  let last = Promise.resolve();
  const pour = async (data: Buffer, dueAt: number): Promise<void> => {
    await sleep(Math.max(0, dueAt - performance.now()));
    while (data.length > 0 && !socket.destroyed) {
      const portion = Math.min(data.length, weather.dripBytes);
      socket.write(data.subarray(0, portion));
      data = data.subarray(portion);
      if (data.length > 0) await sleep(1);
    }
    waiting--;
  };
  return (data) => {
    if (waiting === 0 && weather.lagMs === 0 && data.length <= weather.dripBytes) return void socket.write(data);
    waiting++;
    const dueAt = performance.now() + weather.lagMs;
    last = last.then(() => pour(data, dueAt));
  };
}
