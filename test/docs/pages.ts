import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../..", import.meta.url));

/** A page by its path in the repository. */
export function readPage(path: string): string {
  return readFileSync(join(root, path), "utf8");
}

/** All documents of the site. */
export function listPages(): string[] {
  const files = readdirSync(join(root, "docs"), { recursive: true, withFileTypes: true });
  return files
    .filter((file) => file.isFile() && file.name.endsWith(".md") && !file.parentPath.includes("node_modules"))
    .map((file) => join(file.parentPath, file.name).slice(root.length))
    .sort();
}

/** A fenced block: its language, the file it stands for if it names one, and what is in it. */
export interface Block {
  readonly language: string;
  readonly file: string | undefined;
  readonly text: string;
  readonly line: number;
}

export function blocksOf(page: string): Block[] {
  return [...page.matchAll(/^```(\w+)(?: \[(.+?)\])?\n([\s\S]*?)^```$/gm)].map((found) => ({
    language: found[1]!,
    file: found[2],
    text: found[3]!,
    line: page.slice(0, found.index).split("\n").length,
  }));
}

/** The part of a page under a heading of the second level. */
export function sectionOf(page: string, title: string): string {
  const section = page.split(/^## /m).find((part) => part.startsWith(`${title}\n`));
  if (section === undefined) throw new Error(`The page has no section '${title}'.`);
  return section;
}

/** What is not code: links and headings count only here. */
export function proseOf(page: string): string {
  return page.replaceAll(/^```[\s\S]*?^```$/gm, "");
}
