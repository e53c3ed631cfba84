import { createServer, request as forward } from "node:http";
import type { AddressInfo } from "node:net";
import type { Locator, Page } from "playwright-core";
import { expect, onTestFinished, test, vi } from "vitest";
import { createDashboard } from "../../src/dashboard/server/index.ts";
import { defineTask, RateLimitError, type Task } from "../../src/index.ts";
import { until } from "../support/wait.ts";
import { complaintsOf, expectAccessible, hasBrowser, inEveryView, useBrowser, views, visit } from "./browser.ts";
import { makeScene } from "./scene.ts";

// A browser is slow on a machine whose cores are all busy.
vi.setConfig({ testTimeout: 240_000 });
const open = useBrowser();
const later = (): Date => new Date(Date.now() + 3_600_000);

const attacks = [
  "<img src=x onerror=alert(1)>",
  "<script>alert(2)</script>",
  '"><svg/onload=alert(3)>',
  "javascript:alert(4)",
  "{{constructor.constructor('alert(5)')()}}",
  "</pre><iframe srcdoc='<script>alert(6)</script>'>",
];

test.skipIf(!hasBrowser)("whatever jobs contain is shown as text", async () => {
  const names = attacks.map((attack) => attack.replaceAll("/", "∕"));
  const [name = ""] = names;
  const boom = (): never => {
    const stack = ["Error", ...attacks.map((attack) => `    at ${attack} (/app/${attack}.js:1:1)`)].join("\n");
    throw Object.assign(new Error(attacks.join(" ")), { name: attacks[0], stack });
  };
  const limited = { concurrency: { limit: 1, key: "tenant" } } as const;
  const { database, utils, url } = await makeScene({ tasks: { [name]: boom }, taskOptions: { [name]: limited } });
  const said = { pid: 1, hostname: attacks[0], version: attacks[1], appVersion: attacks[2], tasks: attacks };
  await database.query("select graphile_worker.worker_heartbeat($1, $2)", [attacks[3], JSON.stringify(said)]);
  const [first = "", second = ""] = attacks;
  const failed = await utils.addJob(name, { [first]: attacks }, { maxAttempts: 1, jobKey: second });
  const waiting = await utils.addJob(
    name,
    { html: attacks },
    { runAt: later(), jobKey: first, queueName: second, flags: [first] },
  );
  const [group] = await until(async () => {
    const groups = await utils.listErrors();
    return groups.length > 0 && groups;
  });
  await utils.pause({ task: name }, { reason: first, by: second });
  await utils.addJobs(attacks.map((tenant) => ({ identifier: name, payload: { tenant } })));
  await utils.setLimit(name, { kind: "concurrency", path: ["tenant"], key: first, limit: 2 });
  await database.query(
    "insert into graphile_worker._private_known_crontabs (identifier, known_since) select unnest($1::text[]), now()",
    [attacks],
  );
  await utils.pause({ cron: first }, { reason: second });
  for (const by of attacks) await utils.beginAction({ by, action: by, target: { filter: { task: by, search: by } } });
  const page = await open(url);
  const paths = [
    "",
    "jobs",
    `jobs?search=${encodeURIComponent(first)}`,
    `jobs?task=${encodeURIComponent(name)}&queue=${encodeURIComponent(second)}`,
    `jobs/${failed.id}`,
    `jobs/${waiting.id}`,
    `jobs/new?copyOf=${waiting.id}`,
    `jobs/${encodeURIComponent(first)}`,
    "errors",
    `errors/${group!.fingerprint}`,
    "tasks",
    `tasks/${encodeURIComponent(name)}`,
    "queues",
    "cron",
    "workers",
    "limits",
    "history",
    "audit",
    `audit?by=${encodeURIComponent(first)}`,
  ];
  const linked = page.getByRole("navigation", { name: "Pages" }).getByRole("link");
  await linked.first().waitFor();
  const addresses = await linked.evaluateAll((links) => links.map((link) => link.getAttribute("href")!));
  const root = new URL(url).pathname;
  expect(addresses.map((href) => new URL(href, url).pathname.slice(root.length))).toSatisfy((all: string[]) =>
    all.every((path) => paths.includes(path)),
  );
  for (const path of paths) {
    await visit(page, path);
    await page.locator(".skeleton").first().waitFor({ state: "detached" });
    const alien = await page
      .locator(
        "main :is(script, img, iframe, object, embed, style, [onerror], [onload], [style], a[href^='javascript'])",
      )
      .count();
    expect(alien, path).toBe(0);
  }
  await visit(page, `jobs/${waiting.id}`);
  await page.locator(".tree").getByText(first).first().waitFor();
  // What attacked was there to be seen.
  await visit(page, `jobs/${failed.id}`);
  await page.getByLabel("Stack", { exact: true }).getByText(`at ${first} (`).waitFor();
  await visit(page, "limits");
  await page.getByText("Among the next").getByText(second).waitFor();
  await page
    .getByRole("table", { name: `Keys of ${name}` })
    .getByText(first, { exact: true })
    .waitFor();
  await visit(page, "workers");
  await page.getByRole("heading", { name: first }).waitFor();
  await visit(page, "cron");
  await page.getByRole("table").getByText(second, { exact: true }).waitFor();
  await visit(page, "audit");
  await page.getByRole("table").getByText(second, { exact: true }).first().waitFor();
  expect(complaintsOf(page)).toEqual([]);
});

test.skipIf(!hasBrowser)("the keyboard reaches everything", async () => {
  const { utils, url } = await makeScene();
  const ids: string[] = [];
  for (const n of [1, 2, 3]) ids.unshift((await utils.addJob("held", { n }, { runAt: later() })).id);
  const page = await open(url);
  await page.locator(".health").waitFor();
  // Two keys mean a page only if they follow each other soon, so neither waits for the answer to the other.
  const goTo = async (key: string): Promise<unknown> =>
    Promise.all([page.keyboard.press("g"), page.keyboard.press(key)]);
  await goTo("j");
  await page.locator("tbody tr").nth(2).waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.keyboard.press("x");
  await page.getByRole("toolbar").getByText("1 selected").waitFor();
  expect(await page.getByRole("checkbox", { name: `Select job ${ids[1]}` }).isChecked()).toBe(true);
  await page.keyboard.press("k");
  await page.keyboard.press("Enter");
  await page.locator("h1").getByText(`#${ids[0]}`).waitFor();
  await page.keyboard.press("/");
  await until(() => page.evaluate("document.activeElement?.type === 'search'"));
  await page.keyboard.type("nothing like this");
  await page.getByText("No jobs match.").waitFor();
  await page.keyboard.press("Escape");
  await goTo("e");
  await page.locator("h1").getByText("Errors").waitFor();
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keyboard" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.keyboard.press("Control+k");
  await page.keyboard.type(ids[2]!);
  await page.getByRole("option", { name: `#${ids[2]}` }).waitFor();
  await page.keyboard.press("Enter");
  await page.locator("h1").getByText(`#${ids[2]}`).waitFor();

  // By Tab alone, with the focus in view: from the first link to an action, and back out of its dialog.
  await page.locator("body").click({ position: { x: 1, y: 400 } });
  for (let tab = 0; tab < 60; tab += 1) {
    await page.keyboard.press("Tab");
    if (await page.evaluate("document.activeElement?.textContent === 'Reschedule'")) break;
  }
  expect(await page.evaluate("getComputedStyle(document.activeElement).outlineStyle")).toBe("solid");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await until(() => page.evaluate("document.activeElement?.textContent === 'Reschedule'"));
  expect(complaintsOf(page)).toEqual([]);
});

test.skipIf(!hasBrowser)("every state has an address: back, forward and reload give it again", async () => {
  const { utils, url } = await makeScene();
  const job = await utils.addJob("held", {}, { runAt: later(), queueName: "a/b&c=d" });
  const page = await open(url);
  await page.getByRole("link", { name: "Jobs", exact: true }).first().click();
  await page.getByRole("navigation", { name: "States" }).getByText("Later").click();
  await page.getByPlaceholder("Queue").fill("a/b&c=d");
  await page.keyboard.press("Enter");
  await until(() => page.url().endsWith("/jobs?state=scheduled&queue=a%2Fb%26c%3Dd"));
  await page
    .locator("tbody")
    .getByRole("link", { name: `#${job.id}` })
    .click();
  await page.locator("h1").getByText("held").waitFor();
  const address = page.url();
  await page.goBack();
  await page.locator("tbody tr").waitFor();
  expect(await page.getByPlaceholder("Queue").inputValue()).toBe("a/b&c=d");
  await page.goBack();
  await until(async () => (await page.getByPlaceholder("Queue").inputValue()) === "");
  expect(page.url()).toMatch(/\/jobs\?state=scheduled$/);
  await page.goForward();
  await page.goForward();
  await page.locator("h1").getByText("held").waitFor();
  expect(page.url()).toBe(address);
  await page.reload();
  await page.locator("h1").getByText("held").waitFor();

  // The theme and the zone of times are the viewer's, and stay.
  await page.getByRole("button", { name: "Settings" }).click();
  await page.getByText("Dark", { exact: true }).click();
  await page.getByText("UTC", { exact: true }).click();
  await page.reload();
  await page.locator("h1").getByText("held").waitFor();
  expect(await page.evaluate("getComputedStyle(document.documentElement).colorScheme")).toBe("dark");
  expect(await page.locator(".facts time").first().getAttribute("title")).toMatch(/ UTC$/);
  expect(complaintsOf(page)).toEqual([]);
});

test.skipIf(!hasBrowser)("a job leads to what it has added, and from there to what added it", async () => {
  const order: Task = async (_payload, { addJob }) => void (await addJob("held", {}, { runAt: later() }));
  const { utils, url } = await makeScene({ tasks: { "order/place": order } });
  const { id } = await utils.addJob("order/place", {});
  const [child] = await until(async () => {
    const { added } = await utils.getJobLinks(id);
    return added.length > 0 && added;
  });
  for (const view of [views[0], views[3]]) {
    const page = await open(url, view);
    await visit(page, `jobs/${id}`);
    const family = (title: string): Locator => page.locator("aside section").filter({ hasText: title });
    await family("It added").getByText("Later").waitFor();
    await expectAccessible(page, "what it has added");
    await family("It added")
      .getByRole("link", { name: `#${child!.id}` })
      .click();
    await page.locator("h1").getByText(`#${child!.id}`).waitFor();
    await family("Added by").getByText("Succeeded").waitFor();
    await family("Added by")
      .getByRole("link", { name: `#${id}` })
      .click();
    await page.locator("h1").getByText("order/place").waitFor();
    expect(complaintsOf(page)).toEqual([]);
  }
});

test.skipIf(!hasBrowser)("a live list keeps its rows in place and counts the new ones", async () => {
  let finish = (): void => undefined;
  const slow: Task = (_payload, helpers) => {
    helpers.reportProgress?.({ done: 31, total: 50, note: "page 31" });
    return new Promise<void>((resolve) => {
      finish = resolve;
    });
  };
  const { utils, url } = await makeScene({ tasks: { slow } });
  onTestFinished(() => finish());
  await utils.addJob("held", {}, { runAt: later(), jobKey: "first" });
  const page = await open(url);
  await visit(page, "jobs");
  await page.locator("tbody").getByText("first").waitFor();
  await page.locator(".live-dot").getByText("Live").waitFor();
  await utils.addJobs([1, 2, 3].map((n) => ({ identifier: "held", payload: { n }, runAt: later() })));
  await page.getByRole("button", { name: "3 new" }).waitFor();
  expect(await page.locator("tbody tr").count()).toBe(1);
  await page.getByRole("button", { name: "3 new" }).click();
  await page.locator("tbody tr").nth(3).waitFor();
  const { id } = await utils.addJob("slow", {});
  await page.getByRole("button", { name: "1 new" }).click();
  await page.locator("tbody").getByText("62 % · page 31").waitFor();
  await utils.removeJob("first");
  await page.locator("tbody tr.is-gone").getByText("first").waitFor();
  await visit(page, `jobs/${id}`);
  await page.locator(".why").getByText("62 % page 31").waitFor();
  finish();
  await page.locator(".why").getByText("Succeeded").waitFor();
  expect(complaintsOf(page)).toEqual([]);
});

/** A proxy in front of the dashboard, as they are found: it may cut streams or everything. */
async function startProxy(target: string): Promise<{
  readonly origin: string;
  readonly mode: { now: "open" | "no-streams" | "down" };
  readonly streams: () => number;
}> {
  const mode = { now: "open" as "open" | "no-streams" | "down" };
  let streams = 0;
  const server = createServer((request, response) => {
    const isStream = request.url!.includes("/api/stream");
    if (mode.now === "down" || (isStream && mode.now === "no-streams")) {
      response.destroy();
      return;
    }
    if (isStream) streams += 1;
    const onward = forward(
      new URL(request.url!, target),
      { method: request.method, headers: request.headers },
      (answer) => {
        response.writeHead(answer.statusCode!, answer.headers);
        answer.pipe(response);
      },
    );
    onward.on("error", () => response.destroy());
    request.pipe(onward);
    response.on("close", () => {
      onward.destroy();
      if (isStream) streams -= 1;
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { origin, mode, streams: () => streams };
}

const setHidden = (page: Page, hidden: boolean): Promise<unknown> =>
  page.evaluate(`
    Object.defineProperty(document, "hidden", { configurable: true, get: () => ${hidden} });
    document.dispatchEvent(new Event("visibilitychange"));
  `);

test.skipIf(!hasBrowser)(
  "one stream feeds a page; cut streams are replaced by polling, and what is stale says so",
  async () => {
    const { utils, url } = await makeScene();
    await utils.addJob("held", {}, { runAt: later(), jobKey: "first" });
    const proxy = await startProxy(url);
    const page = await open(url.replace(new URL(url).origin, proxy.origin), views[2]);
    await visit(page, "jobs");
    await page.locator(".live-dot").getByText("Live").waitFor();
    await until(() => proxy.streams() === 1);
    await setHidden(page, true);
    await until(() => proxy.streams() === 0);
    await setHidden(page, false);
    await until(() => proxy.streams() === 1);

    proxy.mode.now = "no-streams";
    await visit(page, "jobs");
    await page.locator(".live-dot").getByText("Every 5 s").waitFor();
    await utils.addJob("held", {}, { runAt: later(), jobKey: "second" });
    await page.getByRole("button", { name: "1 new" }).waitFor();

    proxy.mode.now = "down";
    await page.getByText(/What you see is \d+ s old/).waitFor();
    await page.locator("tbody").getByText("first").waitFor();
    proxy.mode.now = "open";
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByText("What you see is").waitFor({ state: "detached" });
  },
);

test.skipIf(!hasBrowser)(
  "a payload is written as JSON by whoever began before the task's fields were known",
  async () => {
    const { url } = await makeScene();
    const page = await open(url);
    let isAsked = false;
    let answer = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      answer = resolve;
    });
    await page.route("**/api/form*", async (route) => {
      isAsked = true;
      await held;
      await route.continue();
    });
    await visit(page, "jobs/new?task=order");
    const json = page.getByLabel("Payload (JSON)", { exact: true });
    await json.focus();
    await until(() => isAsked);
    answer();
    await page.getByRole("button", { name: "Edit in fields" }).waitFor();
    await page.keyboard.press("End");
    await page.keyboard.type(" ");
    expect(await json.inputValue()).toMatch(/^\{\} $/);
    await page.getByRole("button", { name: "Edit in fields" }).click();
    await page.getByLabel("amount", { exact: true }).waitFor();
  },
);

test.skipIf(!hasBrowser)("it works below any path, and offers nothing that a person may not do", async () => {
  const { database, utils } = await makeScene();
  const job = await utils.addJob("held", {}, { runAt: later() });
  const dashboard = createDashboard({
    connectionString: database.url,
    auth: () => ({ name: "guest", can: ["retry"] }),
    basePath: "/ops/deep/jobs",
  });
  onTestFinished(() => dashboard.close());
  const server = createServer((request, response) => void dashboard.node(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const root = `http://127.0.0.1:${(server.address() as AddressInfo).port}/ops/deep/jobs`;
  const page = await open(root);
  await page.locator(".health").waitFor();
  await page.getByRole("link", { name: "Jobs", exact: true }).first().click();
  expect(page.url()).toBe(`${root}/jobs`);
  expect(await page.getByRole("link", { name: "Add a job" }).count()).toBe(0);
  await page
    .locator("tbody")
    .getByRole("link", { name: `#${job.id}` })
    .click();
  await page.locator("h1").getByText("held").waitFor();
  await page.reload();
  await page.locator("h1").getByText("held").waitFor();
  expect(page.url()).toBe(`${root}/jobs/${job.id}`);
  const offered = await page.getByRole("group", { name: "Actions" }).getByRole("button").allTextContents();
  expect(offered.filter((name) => name !== "Retry")).toEqual([]);
  await visit(page, "jobs/new");
  await page.getByText("You may not add jobs here.").waitFor();
  expect(complaintsOf(page)).toEqual([]);
});

test.skipIf(!hasBrowser)("limits are shown with their keys and holds, changed and taken back", async () => {
  const limits = { concurrency: [{ limit: 10 }, { limit: 2, key: "tenant" }], fair: "region" };
  const { utils, url } = await makeScene({
    tasks: {
      sync: defineTask({ identifier: "sync", ...limits, run: () => undefined }),
      call: defineTask({
        identifier: "call",
        rateLimit: { limit: 100, period: "1m", burst: 20 },
        run: () => {
          throw new RateLimitError({ retryAfter: "1h" }, "come back later");
        },
      }),
    },
  });
  await utils.addJob("call", {});
  await until(async () => (await utils.listLimits()).some(({ holds }) => holds.length > 0));
  const page = await open(url);
  await inEveryView(page, async (_, isThorough) => {
    await visit(page, "limits");
    for (const text of ["10 at a time", "2 at a time for each tenant", "turns by region", "100 per 60 s"]) {
      await page.getByText(text, { exact: true }).waitFor();
    }
    await page.getByText(/Held back, ends in \d+ min: come back later/).waitFor();
    if (isThorough) await expectAccessible(page, "limits");
    const press = (name: string): Promise<void> => page.getByRole("button", { name, exact: true }).click();
    await press("Change sync, 10 at a time");
    await page.getByLabel("Jobs at a time").fill("5");
    if (isThorough) await expectAccessible(page, "limit dialog");
    await press("Change it for all workers");
    await page.getByText("5 at a time", { exact: true }).waitFor();
    await press("Set a key of sync, 2 at a time for each tenant");
    await page.getByLabel("Value of tenant").fill("acme");
    await page.getByLabel("Jobs at a time").fill("7");
    await press("Change it for all workers");
    await press("Change the limit of acme");
    await page.getByLabel("Jobs in a turn").fill("3");
    await press("Change it for all workers");
    await until(async () => {
      const own = (await utils.listLimits()).flatMap(({ key, overrides }) => (key === "tenant" ? overrides : []));
      return own.length === 1 && own[0]!.key === "acme" && own[0]!.limit === 7 && own[0]!.weight === 3;
    });
    if (isThorough) await expectAccessible(page, "limits with a key");
    await press("Take back the limit of acme");
    await press("Take back the change of sync, 5 at a time");
    await page.getByText("10 at a time", { exact: true }).waitFor();
    await until(async () =>
      (await utils.listLimits()).every(({ overrides, isChanged }) => !isChanged && overrides.length === 0),
    );
  });
  expect(complaintsOf(page)).toEqual([]);
});
