import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { makeEmit } from "../src/emit.ts";
import type { WorkerPluginContext } from "../src/plugin-context.ts";

/** A payload that says whether somebody has read it. */
function watchedPayload(): { payload: never; reads: () => number } {
  let reads = 0;
  const payload = {
    get job() {
      reads++;
      return {};
    },
  };
  return { payload: payload as never, reads: () => reads };
}

const emitTo = (emitter: EventEmitter) => makeEmit(emitter, {} as WorkerPluginContext, () => undefined);

test("a plain emitter without listeners costs nothing: the payload is not even read", () => {
  const emitter = new EventEmitter();
  const emit = emitTo(emitter);
  const { payload, reads } = watchedPayload();
  emit("job:start", payload);
  expect([emit.heard("job:start"), reads()]).toEqual([false, 0]);

  emitter.on("job:start", () => undefined);
  emit("job:start", payload);
  expect([emit.heard("job:start"), reads()]).toEqual([true, 1]);
});

test("an emitter with an `emit` of its own gets every event through it, from the moment that it has one", () => {
  const emitter = new EventEmitter();
  const emit = emitTo(emitter);
  const names: unknown[] = [];
  emit("job:start", {} as never);
  emitter.emit = (name) => names.push(name) > 0;
  expect(emit.heard("job:start")).toBe(true);
  emit("job:start", {} as never);
  expect(names).toEqual(["job:start"]);
});
