import { runInThisContext } from "node:vm";
import { expect, test, vi } from "vitest";
import { type CronItem, cron, parseCronItems, parseCrontab } from "../../src/index.ts";
import { makeProject } from "../support/project.ts";
import { compile } from "./compile.ts";
import { readPage, sectionOf } from "./pages.ts";

/* Tables that list names of the library: each name exists, and none is missing. */

vi.setConfig({ testTimeout: 120_000 });

const codeIn = (cell: string): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, code]) => code!);

/** The cells of the rows of the tables in a text, without their heads. */
function rowsOf(text: string): string[][] {
  const rows = text.split("\n").filter((line) => line.startsWith("|"));
  const cells = rows.map((row) =>
    row
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
  return cells.filter((_, index) => !cells[index + 1]?.[0]?.startsWith("--") && !cells[index]![0]!.startsWith("--"));
}

/** Each hook of the page with what it says the hook is told, values in brackets aside. */
function documentedHooks(): [string, string[]][] {
  const page = readPage("docs/hooks-and-plugins.md");
  const observers = rowsOf(sectionOf(page, "Observers")).map(([name, , told]): [string, string[]] => [
    codeIn(name!)[0]!,
    codeIn(told!.replaceAll(/ \(.*?\)/g, "")),
  ]);
  const interceptors = [...sectionOf(page, "Interceptors").matchAll(/\*\*`(\w+)`\*\* \((.+?)\)/g)].map(
    ([, name, told]): [string, string[]] => [name!, codeIn(told!)],
  );
  return [...observers, ...interceptors];
}

test("the page about hooks names every hook and everything it is told", async () => {
  const documented = documentedHooks().map(([name, told]) => `${name}: ${JSON.stringify(told)}`);
  const { folder } = await makeProject();
  const program = `
    import type { HookContext, HookName } from "hathi";
    const documented = { ${documented.join(", ")} } as const;
    type Documented = typeof documented;
    type Told<Name extends HookName> = Name extends keyof Documented ? Documented[Name][number] | "context" : never;
    type Difference = { [Name in HookName]: [keyof HookContext<Name>] extends [Told<Name>]
      ? [Told<Name>] extends [keyof HookContext<Name>] ? never : Name : Name }[HookName];
    const differing: [Difference] extends [never] ? "none" : Difference = "none";
    const unknown: [Exclude<keyof Documented, HookName>] extends [never] ? "none" : Exclude<keyof Documented, HookName> = "none";
    console.log(differing, unknown);`;
  expect(await compile(folder, { "hooks.ts": program })).toBe("");
});

/** Options that mean something only together with another one. */
const company: Readonly<Record<string, readonly [string, string]>> = {
  missed: ["fill=1d&", ".fill({ days: 1 })"],
  jobKeyMode: ["jobKey=k&", '.jobKey("k")'],
};

test("each option of a crontab and its twin in code mean the same", () => {
  const rows = rowsOf(sectionOf(readPage("docs/cron-and-time-zones.md"), "Options"));
  const pairs = rows.flatMap(([crontab, code]) => {
    // Further values of an option stand behind it without its name.
    const options = codeIn(crontab!).filter((option) => option.includes("="));
    return codeIn(code!).map((call, index) => [options[index]!, call] as const);
  });
  expect(pairs.length).toBeGreaterThan(12);
  for (const [option, call] of pairs) {
    const [before, callBefore] = company[option.split("=")[0]!] ?? ["", ""];
    const [written] = parseCrontab(`0 9 * * * report ?${before}${option}`);
    const build: (of: typeof cron) => CronItem = runInThisContext(
      `(cron) => cron.dailyAt("report", 9, 0)${callBefore}${call}.build()`,
    );
    const [built] = parseCronItems([build(cron)]);
    const { payload, match } = written!;
    expect({ ...built, payload, match }, `${option} and ${call}`).toEqual(written);
  }
});
