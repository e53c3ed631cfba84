import { expect, test } from "vitest";
import { listPages, proseOf, readPage } from "./pages.ts";

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

test.each(["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "bench/NOTES.md", ...listPages()])(
  "%s is in plain English",
  (path) => {
    const prose = proseOf(readPage(path)).replaceAll(/`[^`\n]*`/g, "``");
    const found = phrases.flatMap(([phrase, instead]) => {
      const line = prose.split("\n").find((each) => phrase.test(each));
      return line === undefined ? [] : [`${phrase.source}, better: ${instead}. ${line.trim()}`];
    });
    expect(found).toEqual([]);
  },
);
