import { existsSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { expect, test } from "vitest";
import { listPages, proseOf, readPage, root } from "./pages.ts";

const { slugOf } = (await import(`${root}docs/.vitepress/slug.mjs`)) as { slugOf: (heading: string) => string };
const { sidebar } = (await import(`${root}docs/.vitepress/sidebar.mjs`)) as {
  sidebar: { items: { link: string }[] }[];
};

function linksOf(path: string): string[] {
  const prose = proseOf(readPage(path)).replaceAll(/`[^`\n]*`/g, "");
  const links = [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target!);
  return links.filter((target) => !/^https?:/.test(target));
}

/** The anchors of a page; a heading that comes again gets a number. */
function anchorsOf(path: string): Set<string> {
  const seen = new Map<string, number>();
  const headings = [...proseOf(readPage(path)).matchAll(/^#{1,4} (.+)$/gm)].map(([, heading]) => heading!);
  return new Set(
    headings.map((heading) => {
      const slug = slugOf(heading.replaceAll("`", ""));
      const count = seen.get(slug) ?? 0;
      seen.set(slug, count + 1);
      return count === 0 ? slug : `${slug}-${count}`;
    }),
  );
}

function findBroken(path: string): string[] {
  return linksOf(path).filter((link) => {
    const [file = "", anchor] = link.split("#");
    const target = file === "" ? path : normalize(join(dirname(path), file));
    if (!existsSync(join(root, target))) return true;
    return anchor !== undefined && target.endsWith(".md") && !anchorsOf(target).has(anchor);
  });
}

/** Written by the benchmark, and so not there before its first full run. */
const comesLater = "bench/RESULTS.md";

test.each(["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", ...listPages()])(
  "every link in %s leads somewhere",
  (path) => {
    expect(findBroken(path).filter((link) => link !== comesLater)).toEqual([]);
  },
);

test("links between documents stay in docs, so that they work on the site", () => {
  const leaving = listPages().flatMap((path) =>
    linksOf(path)
      .filter((link) => !normalize(join(dirname(path), link)).startsWith("docs/") && !link.startsWith("#"))
      .map((link) => `${path}: ${link}`),
  );
  expect(leaving).toEqual([]);
});

test("every document is in the sidebar, and the sidebar names no other", () => {
  const named = sidebar.flatMap(({ items }) => items.map(({ link }) => `docs${link}.md`));
  expect(named.toSorted()).toEqual(listPages().filter((path) => path !== "docs/index.md"));
});

test("the README is short enough to be read", () => {
  expect(readPage("README.md").split("\n").length).toBeLessThan(150);
});
