import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { createDashboard, type Dashboard } from "../../../src/dashboard/server/index.ts";
import { rememberingLogger } from "../../support/log.ts";
import { sharedDatabase } from "../../support/shared-database.ts";
import { startPrefixProxy, takeJourney } from "../journey.ts";
// @ts-expect-error: JavaScript, as the documents show it
import { mounts as untyped } from "./mounts.mjs";

/* The frameworks are in a package of their own, which scripts/test.mjs installs. Next is an example: test/examples/next.test.ts. */

vi.setConfig({ testTimeout: 60_000 });

type Mount = (dashboard: Dashboard) => Promise<{ readonly port: number; stop(): Promise<void> }>;
const mounts = untyped as Record<string, Mount>;
const database = sharedDatabase();
let dashboard: Dashboard;
beforeAll(() => {
  dashboard = createDashboard({
    auth: { basic: { username: "ann", password: "correct horse" } },
    basePath: "/admin/hathi",
    connectionString: database().url,
    migrate: false,
    statementTimeout: 30_000,
    logger: rememberingLogger().logger,
  });
});
afterAll(() => dashboard.close());

const headers = { authorization: `Basic ${Buffer.from("ann:correct horse").toString("base64")}` };

test.each(Object.keys(mounts))(
  "%s, below a path, with bodies that were parsed before, and behind a proxy that changes path and host",
  async (name) => {
    const { port, stop } = await mounts[name]!(dashboard);
    const proxy = await startPrefixProxy(port);
    try {
      const mount = `http://127.0.0.1:${port}/admin/hathi`;
      expect((await fetch(mount)).status).toBe(401);
      await takeJourney(mount, headers);
      await takeJourney(`${proxy.url}/admin/hathi`, headers);
    } finally {
      await proxy.stop();
      await stop();
    }
  },
);

test("no path at all", async () => {
  const bare = createDashboard({
    auth: "host",
    connectionString: database().url,
    migrate: false,
    statementTimeout: 30_000,
    logger: rememberingLogger().logger,
  });
  const { port, stop } = await mounts["node:http"]!(bare);
  try {
    await takeJourney(`http://127.0.0.1:${port}`);
  } finally {
    await stop();
    await bare.close();
  }
});
