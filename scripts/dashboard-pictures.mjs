// Makes the pictures of the documents: a small shop whose jobs run, looked at with Chromium. Needs `npm run build`, the packages of
// test/dashboard, Chromium, `cwebp` and `img2webp` (Debian: webp), and for the page's first choice of fonts Debian's fonts-inter and fonts-jetbrains-mono. An
// hour of figures is written into the database beforehand.
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire, syncBuiltinESMExports } from "node:module";
import os from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { startEmbedded } from "@hathi/embedded";
import { placeStacksIn } from "./pictures/place-stacks.mjs";
import { openShop } from "./pictures/shop.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const output = join(root, "docs/public/dashboard");
const folder = mkdtempSync(join(os.tmpdir(), "hathi-pictures-"));
const { chromium } = createRequire(join(root, "test/dashboard/package.json"))("playwright-core");

placeStacksIn("/srv/shop");
mkdirSync(output, { recursive: true });
const postgres = await startEmbedded({ dataDir: join(folder, "postgres") });
const shop = await openShop(postgres.connectionString, (name) => {
  os.hostname = () => name;
  syncBuiltinESMExports();
});
const server = createServer((request, response) => void shop.dashboard.node(request, response));
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM_PATH ?? "/usr/bin/chromium",
  args: [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
  ],
});
const address = `http://127.0.0.1:${server.address().port}/`;

try {
  const failedJob = await shop.settle();
  const light = await openPage({ width: 1280, height: 800 }, "light", 2);
  await picture(light, "overview", "");
  await picture(light, "jobs", "jobs?state=dead", async () => {
    await light.locator("tbody .check").nth(1).check();
    await light.locator("tbody .check").nth(2).check();
  });
  await picture(light, "job", `jobs/${failedJob}`);
  const dark = await openPage({ width: 1280, height: 800 }, "dark", 2);
  await picture(dark, "workers", "workers");
  await film(await openPage({ width: 1200, height: 750 }, "light", 1), failedJob);
} finally {
  await browser.close();
  server.closeAllConnections();
  server.close();
  await shop.close();
  await postgres.stop();
  rmSync(folder, { recursive: true, force: true });
}

async function openPage(viewport, colorScheme, deviceScaleFactor) {
  const context = await browser.newContext({ viewport, colorScheme, deviceScaleFactor, reducedMotion: "reduce" });
  return context.newPage();
}

async function show(page, path) {
  await page.goto(new URL(path, address).href);
  await page.locator("main :is(.figures, .why, tbody tr, .worker, .stack)").first().waitFor();
  await sleep(1_500);
}

async function picture(page, name, path, prepare = async () => undefined) {
  await show(page, path);
  await prepare();
  const file = join(folder, `${name}.png`);
  await page.screenshot({ path: file });
  run("cwebp", "-quiet", "-q", "82", "-m", "6", file, "-o", join(output, `${name}.webp`));
}

/** A minute of an on-call engineer's life, for the README. */
async function film(page, failedJob) {
  const frames = [];
  const shoot = async (ms) => {
    const file = join(folder, `frame-${frames.length}.png`);
    await page.screenshot({ path: file });
    frames.push("-d", String(ms), file);
  };
  await show(page, "");
  await shoot(900);
  const chart = await page.locator(".chart").first().boundingBox();
  for (let step = 0; step <= 12; step += 1) {
    await page.mouse.move(chart.x + chart.width * (0.2 + 0.05 * step), chart.y + 80);
    await shoot(90);
  }
  await shoot(700);
  await page.mouse.move(600, 10);
  await page.getByRole("link", { name: "Errors", exact: true }).first().click();
  await page.locator("tbody tr").first().waitFor();
  await sleep(800);
  await shoot(1_400);
  await page.locator("tbody .name").first().click();
  await page.locator(".stack").first().waitFor();
  await sleep(800);
  await shoot(1_600);
  await show(page, `jobs/${failedJob}`);
  await shoot(2_000);
  await page.goto(new URL("jobs?state=dead", address).href);
  await page.locator("tbody tr").first().waitFor();
  await sleep(800);
  await shoot(800);
  for (const row of [0, 1, 2, 3]) {
    await page.locator("tbody .check").nth(row).check();
    await shoot(220);
  }
  await page.getByRole("toolbar").getByRole("button", { name: "Retry" }).click();
  await page.locator("dialog").waitFor();
  await shoot(1_300);
  await page
    .locator("dialog")
    .getByRole("button", { name: /^Retry/ })
    .click();
  await page.locator(".toast").waitFor();
  await sleep(600);
  await shoot(1_800);
  run("img2webp", "-loop", "0", "-lossy", "-q", "70", "-m", "6", ...frames, "-o", join(output, "tour.webp"));
}

function run(command, ...args) {
  const { status, error } = spawnSync(command, args, { stdio: ["ignore", "ignore", "inherit"] });
  if (error || status !== 0) throw new Error(`${command} failed: ${error?.message ?? `exit code ${status}`}`);
}
