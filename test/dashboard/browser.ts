import axe from "axe-core";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, expect, onTestFinished } from "vitest";
import { hasProgram } from "../support/has-program.ts";

export const hasBrowser = hasProgram("chromium");

/** How the dashboard is looked at. */
export interface View {
  readonly width: 1440 | 390;
  readonly theme: "light" | "dark";
}

export const views: readonly View[] = [
  { width: 1440, theme: "light" },
  { width: 1440, theme: "dark" },
  { width: 390, theme: "light" },
  { width: 390, theme: "dark" },
];

const flags = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Starts one browser for a file's tests, with a profile that nobody has used; gives the function that opens a page. */
export function useBrowser(): (url: string, view?: View) => Promise<Page> {
  let browser: Browser | undefined;
  beforeAll(async () => {
    if (hasBrowser) browser = await chromium.launch({ executablePath: findChromium(), headless: true, args: flags });
  });
  afterAll(() => browser?.close());
  return async (url, { width, theme } = views[0]!) => {
    const context = await browser!.newContext({
      viewport: sizeOf(width),
      colorScheme: theme,
      reducedMotion: "reduce",
    });
    onTestFinished(() => context.close());
    const page = await context.newPage();
    // What a busy server was slow to read, it reads fifty times as seldom.
    page.setDefaultTimeout(90_000);
    watch(page);
    await page.goto(url);
    return page;
  };
}

function sizeOf(width: View["width"]): { width: number; height: number } {
  return { width, height: width === 390 ? 844 : 900 };
}

/** Shows a page that is open in another way. */
export async function setView(page: Page, { width, theme }: View): Promise<void> {
  await page.setViewportSize(sizeOf(width));
  await page.emulateMedia({ colorScheme: theme });
}

/**
 * Does the same in every view, on one page. `isThorough` in the first and the last, which differ in both respects: what takes long and depends little on
 * the view is left to those.
 */
export async function inEveryView(page: Page, act: (view: View, isThorough: boolean) => Promise<void>): Promise<void> {
  for (const view of views) {
    await setView(page, view);
    await act(view, view === views[0] || view === views.at(-1)).catch(async (error: unknown) => {
      const shown = await page.locator("body").ariaSnapshot({ timeout: 5_000 }).catch(String);
      throw new Error(`At ${view.width} px, ${view.theme}: ${String(error)}\n${page.url()} shows:\n${shown}`, {
        cause: error,
      });
    });
  }
}

const complaints = new WeakMap<Page, string[]>();

/** Remembers whatever the browser complains about: errors of scripts, breaches of the content security policy. */
function watch(page: Page): void {
  const heard: string[] = [];
  complaints.set(page, heard);
  page.on("pageerror", (error) => heard.push(`error: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") heard.push(`${message.type()}: ${message.text()}`);
  });
  page.on("dialog", (dialog) => {
    heard.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
}

/** What the browser complained about so far, except for answers that a test expects to fail. */
export function complaintsOf(page: Page): readonly string[] {
  return complaints.get(page)!.filter((text) => !text.includes("Failed to load resource"));
}

/** Fails with what keeps people from using the page as it is now. */
export async function expectAccessible(page: Page, what: string): Promise<void> {
  // Scripts of a driver are not subject to the page's policy.
  if (!(await page.evaluate("'axe' in window"))) await page.evaluate(axe.source);
  const violations = await page.evaluate(async () => {
    const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
    // biome-ignore lint/suspicious/noExplicitAny: axe is only known to the page
    const { violations } = await (globalThis as any).axe.run({ runOnly: tags });
    return violations.map(({ id, nodes }: { id: string; nodes: { html: string }[] }) => `${id}: ${nodes[0]?.html}`);
  });
  expect(violations, what).toEqual([]);
}

/** The page must not be wider than the window. */
export async function expectNoSidewaysScroll(page: Page, what: string): Promise<void> {
  const [needed, given] = (await page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")) as [
    number,
    number,
  ];
  expect(needed, what).toBeLessThanOrEqual(given);
}

function findChromium(): string {
  return process.env.CHROMIUM_PATH ?? "/usr/bin/chromium";
}

/** Goes to a page of the dashboard as a link within it would. */
export async function visit(page: Page, path: string): Promise<void> {
  const root = (await page.evaluate("document.baseURI")) as string;
  await page.goto(new URL(path, root).href);
  await page.locator("main :is(h1, .health)").first().waitFor();
}
