// Writes docs/reference from the source (doc comments, defaults, the flags of the commands, the schema), and the figures of the
// last benchmark into docs/comparison.md.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "rolldown";
import { makeReference } from "./reference/pages.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const built = join(root, ".hathi/reference");
await build({
  input: { commands: join(root, "src/cli/commands.ts"), options: join(root, "src/runner/runner-options.ts") },
  platform: "node",
  external: /^[^./]/,
  output: { dir: built },
});
const { loadCommands } = await import(pathToFileURL(join(built, "commands.js")).href);
const { tables } = await import(pathToFileURL(join(built, "options.js")).href);
const pages = makeReference({ commands: await loadCommands(["--help"]), tables });
mkdirSync(`${root}docs/reference`, { recursive: true });
for (const [name, text] of Object.entries(pages)) writeFileSync(`${root}docs/${name}`, text);
console.log(`Wrote ${Object.keys(pages).join(", ")} to docs.`);
