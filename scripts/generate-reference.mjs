// Writes docs/reference from the source (doc comments, defaults, the flags of the commands, the schema), and the figures of the
// last benchmark into docs/comparison.md. Build first.
import { mkdirSync, writeFileSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";
import { makeReference } from "./reference/pages.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const built = (name) => import(pathToFileURL(`${root}dist/${name}`).href);

const { loadCommands } = await built("cli/commands.js");
const { defaults, recoveryDefaults } = await built("config/defaults.js");
const pages = makeReference({ commands: await loadCommands(["--help"]), defaults, recoveryDefaults });
mkdirSync(`${root}docs/reference`, { recursive: true });
for (const [name, text] of Object.entries(pages)) writeFileSync(`${root}docs/${name}`, text);
console.log(`Wrote ${Object.keys(pages).join(", ")} to docs.`);
