import { expect, test } from "vitest";
import { listPages, readPage } from "./pages.ts";

/** As many characters of code as the site shows side by side on a wide screen. */
const widest = 96;

test.each(listPages())("no line of code in %s is wider than the page", (path) => {
  const blocks = [...readPage(path).matchAll(/^```.*\n([\s\S]*?)^```$/gm)].map(([, text]) => text!);
  const lines = blocks.flatMap((text) => text.split("\n"));
  expect(lines.filter((line) => [...line].length > widest)).toEqual([]);
});

test.each(listPages())("%s has one title, and it comes first", (path) => {
  const [head, ...rest] = readPage(path)
    .replaceAll(/^```[\s\S]*?^```$/gm, "")
    .replace(/^<!--.*-->\n/, "")
    .split("\n")
    .filter((line) => line !== "");
  expect(head).toMatch(path === "docs/index.md" ? /^---$/ : /^# ./);
  expect(rest.filter((line) => line.startsWith("# "))).toEqual([]);
});
