import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { loadCommands } from "../../src/cli/commands.ts";
import { tables } from "../../src/runner/runner-options.ts";
import { readPage, root } from "./pages.ts";

type MakeReference = (known: object) => Record<string, string>;

const generator = pathToFileURL(`${root}scripts/reference/pages.mjs`).href;
const { makeReference } = (await import(generator)) as { makeReference: MakeReference };
const pages = makeReference({ commands: await loadCommands(["--help"]), tables });

test.each(Object.keys(pages))("docs/%s says what the source says; else run 'npm run docs:reference'", (name) => {
  expect(readPage(`docs/${name}`)).toBe(pages[name]);
});

test("every command of the program is in the reference, with all its flags", async () => {
  for (const { command, flags } of await loadCommands(["--help"])) {
    const verb = [command].flat()[0]!.split(" ")[0];
    expect(pages["reference/cli.md"]).toContain(`\n## ${verb}\n`);
    for (const flag of Object.keys(flags)) expect(pages["reference/cli.md"]).toContain(`\`--${flag}\``);
  }
});
