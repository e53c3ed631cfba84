import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { type PrivateServer, startPrivateServer } from "../support/private-server.ts";
import { startProxy } from "../support/proxy.ts";
import { Arena, nothing, recovery } from "./kit.ts";

async function startServer(): Promise<PrivateServer> {
  const server = await startPrivateServer();
  onTestFinished(() => server.remove());
  return server;
}

test("a server that is read-only for a while costs no job", { timeout: 240_000 }, async () => {
  const server = await startServer();
  const arena = new Arena(server.url, 1);
  const admin = new pg.Client({ connectionString: server.url, options: "-c default_transaction_read_only=off" });
  await admin.connect();
  onTestFinished(() => admin.end());
  const turn = async (value: "on" | "off"): Promise<void> => {
    await admin.query(`alter system set default_transaction_read_only = ${value}`);
    await admin.query("select pg_reload_conf()");
  };
  const workers = await Promise.all([1, 2].map(() => arena.start()));
  for (let round = 0; round < 2; round++) {
    await arena.addMixture(300);
    await arena.rest(arena.any(500));
    await turn("on");
    // The second time every heartbeat is older than the threshold when the server can be written to again.
    await arena.rest(round === 0 ? 1_000 + arena.any(1_500) : recovery.sweepThreshold + 500);
    await turn("off");
  }
  expect(await arena.verdict()).toEqual(nothing);
  expect(workers.map((worker) => worker.output()).join()).toMatch(/Lost the database.*read-only/);
});

test.each(["in order", "after a crash"])(
  "a standby that is promoted %s goes on with every job",
  async (how) => {
    const server = await startServer();
    const standby = await server.makeStandby();
    const proxy = await startProxy(server.url);
    const arena = new Arena(proxy.url, 2);
    await Promise.all([1, 2, 3].map(() => arena.start()));
    await arena.addMixture(600);
    await arena.rest(1_000);
    // Claims outside of queues are not waited for, so those of the last moments may never have reached the standby.
    const end = how === "in order" ? undefined : arena.excuse(null);
    if (how === "after a crash") await server.stop("immediate");
    proxy.redirect(standby.url);
    proxy.cut();
    await arena.rest(2_000); // until then it is read-only
    if (how === "in order") await server.stop("fast");
    await standby.promote();
    end?.();
    await arena.ask("select 1");
    await arena.rest(500);
    await arena.addMixture(200);
    expect(await arena.verdict()).toEqual(nothing);
    expect(arena.count("done")).toBeGreaterThanOrEqual(800);
  },
  240_000,
);
