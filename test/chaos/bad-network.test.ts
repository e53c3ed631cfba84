import { expect, test } from "vitest";
import { freshDatabase } from "../support/database.ts";
import { type Proxy as BadNetwork, startProxy } from "../support/proxy.ts";
import { Arena, nothing, recovery } from "./kit.ts";

/** What becomes of a network; each ends after a while. */
const troubles = ["black hole", "half-open", "reset", "latency", "drip"] as const;

async function bring(trouble: (typeof troubles)[number], proxy: BadNetwork, arena: Arena, pid: number): Promise<void> {
  if (trouble === "black hole") {
    // Longer than the threshold, so others may take its jobs.
    const end = arena.excuse(pid);
    proxy.blackhole();
    await arena.rest(recovery.sweepThreshold + 1_000 + arena.any(1_000));
    proxy.restore();
    end();
  } else if (trouble === "half-open") {
    // Nothing answers on the lines that are open, and the server keeps their sessions; new ones are let through.
    const end = arena.excuse(pid);
    proxy.blackholeOpen();
    await arena.rest(2_000);
    end();
  } else if (trouble === "reset") {
    for (let n = 0; n < 3; n++) {
      proxy.cut();
      await arena.rest(arena.any(300));
    }
  } else if (trouble === "latency") {
    proxy.lag(40 + arena.any(60));
    await arena.rest(1_500);
    proxy.lag(0);
  } else {
    proxy.drip(100 + arena.any(200));
    await arena.rest(1_500);
    proxy.drip(Infinity);
  }
}

test.each([
  [1, ["black hole", "reset", "latency"]],
  [2, ["drip", "reset", "half-open"]],
] as const)(
  "a worker behind a bad network (%i: %s) and one beside it: nothing is lost, doubled, overtaken or stuck",
  async (seed, list) => {
    const arena = new Arena((await freshDatabase()).url, seed);
    const proxy = await startProxy(arena.url);
    const behind = await arena.start({ connectionString: proxy.url });
    await arena.start();
    for (const trouble of list) {
      await arena.addMixture(150);
      await arena.rest(300 + arena.any(300));
      await bring(trouble, proxy, arena, behind.pid);
      await arena.addMixture(50);
      await arena.rest(300);
    }
    expect(await arena.verdict()).toEqual(nothing);
    expect(arena.entries().filter(({ pid, event }) => pid === behind.pid && event === "done").length).toBeGreaterThan(
      10,
    );
  },
  240_000,
);
