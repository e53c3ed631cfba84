import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { listPages, proseOf, readPage, root } from "./pages.ts";

/** Phrases that make a reader stop, each with what to write instead. */
const phrases: readonly (readonly [RegExp, string])[] = [
  [/\b(is|are|was|were|been) told\b/i, "say who does what"],
  [/\b(is|are) said\b/i, "is logged, is printed"],
  [/\b(nobody|somebody|everybody)\b/i, "name the role, process or worker"],
  [/\bfor ever\b/i, "endlessly, without limit"],
  [/\bfor good\b/i, "permanently"],
  [/\ba text\b/i, "a string"],
  [/\ba look\b/i, "a scan, a query"],
  [/\b(is|are|was|be) away\b/i, "unreachable"],
  [/\bof which\b/i, "whose, including"],
  [/\bsigns? of life\b/i, "heartbeat"],
  [/\b(give|gives|gave|given|giving) (\w+ )?back\b/i, "return, recover, restore"],
  [/\bhas come up\b/i, "has started"],
];

/** Each phrase that is found, with what to write instead and its first line. */
function findPhrases(text: string): string[] {
  const prose = text.replaceAll(/`[^`\n]*`|"\w+"/g, "``");
  return phrases.flatMap(([phrase, instead]) => {
    const line = prose.split("\n").find((each) => phrase.test(each));
    return line === undefined ? [] : [`${phrase.source}, better: ${instead}. ${line.trim()}`];
  });
}

test.each(["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "bench/NOTES.md", ...listPages()])(
  "%s is in plain English",
  (path) => {
    expect(findPhrases(proseOf(readPage(path)))).toEqual([]);
  },
);

/** Comments, errors, log lines and help: what people read in the source. */
test.each(["src", "packages/embedded/src", "scripts"])("the files of %s are in plain English", (folder) => {
  const found = readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    // The schema is made from the migrations.
    .filter((file) => /\.(ts|tsx|mjs|sql)$/.test(file) && file !== join("db", "schema.sql"))
    .flatMap((file) => findPhrases(readPage(join(folder, file))).map((phrase) => `${file}: ${phrase}`));
  expect(found).toEqual([]);
});
