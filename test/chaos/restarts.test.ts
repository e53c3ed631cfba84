import { expect, onTestFinished, test } from "vitest";
import { startPrivateServer } from "../support/private-server.ts";
import { Arena, nothing } from "./kit.ts";

test.each([1, 2])(
  "the server restarts and crashes every few seconds under three processes: nothing is lost, doubled, overtaken or stuck (%i)",
  async (seed) => {
    const server = await startPrivateServer();
    onTestFinished(() => server.remove());
    const arena = new Arena(server.url, seed);
    await Promise.all([1, 2, 3].map(() => arena.start()));
    for (const mode of ["fast", "immediate", "fast", "immediate"] as const) {
      await arena.addMixture(300);
      await arena.rest(1_000 + arena.any(1_500));
      // A crash makes the server forget claims outside of queues, so their jobs run again. An orderly restart is no excuse.
      const end = mode === "immediate" ? arena.excuse(null) : undefined;
      await server.restart(mode);
      await arena.ask("select 1");
      end?.();
    }
    expect(await arena.verdict()).toEqual(nothing);
  },
  240_000,
);
