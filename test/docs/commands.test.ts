import { expect, test } from "vitest";
import { commandNames, loadCommands } from "../../src/cli/commands.ts";
import { listPages, readPage } from "./pages.ts";

const commands = await loadCommands(["--help"]);

function flagsOf(verb: string): string[] {
  const command = commands.find(({ command: names }) => [names].flat().some((name) => name.split(" ")[0] === verb));
  return Object.entries(command?.flags ?? {}).flatMap(([name, { alias }]) => [name, ...[alias ?? []].flat()]);
}

/** Every `hathi …` that stands in a code span or block, but for installs of the package. */
function mentionsIn(page: string): string[] {
  const code = [...page.matchAll(/```[a-z]*(?: \[.*?\])?\n([\s\S]*?)```|`([^`\n]+)`/g)];
  return code.flatMap(([, block, span]) =>
    [...(block ?? span ?? "").matchAll(/(?<![\w@/."'])(?<!(?:add|install) )hathi( [^|\n#]*|$)/g)].map(([, rest]) =>
      rest!.trim(),
    ),
  );
}

test.each(["README.md", "CONTRIBUTING.md", ...listPages()])(
  "%s names only commands and flags that there are",
  (path) => {
    const unknown = mentionsIn(readPage(path)).filter((rest) => {
      const words = rest.split(/[\s"\],]+/).filter((word) => word !== "");
      const first = words[0] ?? "run";
      const verb = first.startsWith("-") ? "run" : first;
      if (!/^[a-z][a-z-]*$/.test(verb)) return false; // not a command line
      const flags = words.filter((word) => word.startsWith("--")).map((word) => word.slice(2));
      return (
        !commandNames.includes(verb) || flags.some((flag) => ![...flagsOf(verb), "help", "version"].includes(flag))
      );
    });
    expect(unknown).toEqual([]);
  },
);
