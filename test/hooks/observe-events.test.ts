import { expect, test } from "vitest";
import { observeEvents } from "../../src/emit.ts";
import type { Emit } from "../../src/events.ts";

test("observers are called in their order and before listeners, and one that throws stops nothing", () => {
  const calls: string[] = [];
  const inner: Emit = Object.assign(
    (name: string) => {
      calls.push(`listener of ${name}`);
    },
    { heard: (name: string) => name === "pool:create" },
  );
  const emit = observeEvents(inner, [
    {
      "job:start": () => {
        calls.push("first");
        throw new Error("boom");
      },
    },
    { "job:start": () => void calls.push("second") },
  ]);
  emit("job:start", {} as never);
  emit("pool:create", {} as never);
  expect(calls).toEqual(["first", "second", "listener of job:start", "listener of pool:create"]);
  expect([emit.heard("job:start"), emit.heard("pool:create"), emit.heard("job:success")]).toEqual([true, true, false]);
});
