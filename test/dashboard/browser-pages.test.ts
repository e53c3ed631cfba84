import type { Locator, Page } from "playwright-core";
import { expect, test, vi } from "vitest";
import { until } from "../support/wait.ts";
import {
  complaintsOf,
  expectAccessible,
  expectNoSidewaysScroll,
  hasBrowser,
  setView,
  useBrowser,
  views,
  visit,
} from "./browser.ts";
import { makeScene, type Scene } from "./scene.ts";

// A browser is slow on a machine whose cores are all busy.
vi.setConfig({ testTimeout: 240_000 });
const open = useBrowser();

/** Something on every page: jobs in all states, history, errors, a pause, an action. */
async function fill({ database, utils }: Scene): Promise<{ waiting: string; failed: string; fingerprint: string }> {
  await utils.addJobs(Array.from({ length: 5 }, (_, n) => ({ identifier: "mail/send", payload: { n } })));
  await utils.addJob("held", { tenant: 17 }, { queueName: "tenant-17" });
  const waiting = await utils.addJob(
    "held",
    { tenant: 17, lines: [{ sku: "A" }] },
    { queueName: "tenant-17", jobKey: "sync:17" },
  );
  await utils.addJob("mail/send", {}, { runAt: new Date(Date.now() + 3_600_000), priority: -5 });
  const failed = await utils.addJob("invoice/pdf", { invoice: 9917 }, { maxAttempts: 1 });
  await utils.addJob("invoice/pdf", {}, { maxAttempts: 5 });
  await utils.pause({ task: "nobody/has" }, { reason: "just so", by: "ann" });
  const said = { hostname: "web-3", pid: 7, concurrency: 10, tasks: ["mail/send"], loopDelayMs: 412 };
  await database.query("select graphile_worker.worker_heartbeat('pool-slow', $1)", [JSON.stringify(said)]);
  const groups = await until(async () => {
    const found = await utils.listErrors();
    return found.length > 0 && (await utils.listHistory({ outcome: "succeeded" })).entries.length >= 5 && found;
  });
  return { waiting: waiting.id, failed: failed.id, fingerprint: groups[0]!.fingerprint };
}

test.skipIf(!hasBrowser)(
  "every page shows what there is, to everybody, on wide and narrow screens, light and dark",
  async () => {
    const scene = await makeScene();
    const { waiting, failed, fingerprint } = await fill(scene);
    const page = await open(scene.url);
    const pages: readonly (readonly [string, string | RegExp])[] = [
      ["", "mail/send"],
      ["jobs", "sync:17"],
      ["jobs?state=dead", "total is undefined"],
      [`jobs/${waiting}`, "tenant-17"],
      [`jobs/${failed}`, "total is undefined"],
      ["jobs/new", "Payload (JSON)"],
      ["errors", "total is undefined"],
      [`errors/${fingerprint}`, "Example jobs"],
      ["tasks", "invoice/pdf"],
      ["tasks/mail/send", "per minute"],
      ["queues", "tenant-17"],
      ["cron", "nightly"],
      ["workers", "412 ms"],
      ["limits", "just so"],
      ["history", "mail/send"],
      ["audit", "No changes have been made here yet."],
      ["nowhere", "There is no such page."],
    ];
    for (const [path, text] of pages) {
      await setView(page, views[0]!);
      if (path === "nowhere") await goNowhere(page);
      else await visit(page, path);
      await page.locator("main").getByText(text).first().waitFor();
      for (const view of views) {
        const what = `${path} at ${view.width} px, ${view.theme}`;
        await setView(page, view);
        await page.locator("main").getByText(text).locator("visible=true").first().waitFor();
        await expectAccessible(page, what);
        await expectNoSidewaysScroll(page, what);
      }
      if (path === "workers") await expectLoopDelays(page);
      expect(complaintsOf(page), path).toEqual([]);
    }
  },
);

/** Each worker says how long its event loop was blocked, as its heartbeats tell (test/recovery/heart.test.ts); a long time is a warning. */
async function expectLoopDelays(page: Page): Promise<void> {
  const delayOf = (worker: string): Locator =>
    page.locator("li.worker").filter({ hasText: worker }).locator("dt:text-is('Loop delay') + dd");
  await delayOf("web-3").locator(".warn").getByText("412 ms").waitFor();
  await delayOf("version 4.2.0")
    .getByText(/^\s*\d[\d.]* m?s$/)
    .waitFor();
}

/** An address that no link has. */
async function goNowhere(page: Page): Promise<void> {
  await page.evaluate(`
    history.pushState(null, "", new URL("nowhere", document.baseURI));
    dispatchEvent(new PopStateEvent("popstate"));
  `);
}
