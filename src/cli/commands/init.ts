import { access, appendFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { defineCommand } from "../command.ts";
import { jsonFlag } from "../flags.ts";
import { type Language, scaffoldFiles } from "../scaffold.ts";
import type { Terminal } from "../terminal.ts";
import { UsageError } from "../usage-error.ts";

export const init = defineCommand({
  command: "init",
  describe: "Write a first task, a crontab and a config into this folder",
  flags: {
    ...jsonFlag,
    ts: {
      type: "boolean",
      default: false,
      describe: "Write TypeScript (default with a tsconfig.json; without one, init asks)",
    },
    js: { type: "boolean", default: false, describe: "Write JavaScript" },
  },
  async run(args, terminal) {
    const folder = process.cwd();
    const files = scaffoldFiles(await chooseLanguage(args, folder, terminal));
    for (const name of Object.keys(files)) {
      if (await exists(join(folder, name))) throw new UsageError(`'${name}' is already there; nothing was written.`);
    }
    for (const [name, text] of Object.entries(files)) {
      await mkdir(dirname(join(folder, name)), { recursive: true });
      await writeFile(join(folder, name), text);
    }
    const isIgnored = await ignoreDataFolder(folder);
    const written = [...Object.keys(files), ...(isIgnored ? [".gitignore"] : [])];
    if (args.json) terminal.printJson({ files: written });
    else for (const name of written) terminal.print(`wrote ${name}${name === ".gitignore" ? " (.hathi/)" : ""}`);
    if (!isInstalled(folder)) terminal.note("\nThe files need the package: npm install hathi");
    if (args.json) return;
    terminal.print(
      "\nStart a worker with 'npx hathi --dashboard', which prints the address of a web page that shows its jobs;" +
        '\nand in another terminal: npx hathi add hello --payload \'{"name":"world"}\'',
    );
  },
});

async function chooseLanguage(
  { ts, js, json }: { ts: boolean; js: boolean; json: boolean },
  folder: string,
  terminal: Terminal,
): Promise<Language> {
  if (ts && js) throw new UsageError("Give either --ts or --js, not both.");
  if (ts || js) return ts ? "ts" : "js";
  if (await exists(join(folder, "tsconfig.json"))) return "ts";
  if (json || !process.stdin.isTTY || !process.stdout.isTTY) return "js";
  return (await terminal.confirm("Write TypeScript? Without it you get JavaScript.")) ? "ts" : "js";
}

/** Keeps the embedded database of this folder out of Git. Returns whether something had to be written. */
async function ignoreDataFolder(folder: string): Promise<boolean> {
  const file = join(folder, ".gitignore");
  const text = await readFile(file, "utf8").catch(() => "");
  if (text.split("\n").some((line) => /^\/?\.hathi\/?$/.test(line.trim()))) return false;
  await appendFile(file, `${text === "" || text.endsWith("\n") ? "" : "\n"}.hathi/\n`);
  return true;
}

function isInstalled(folder: string): boolean {
  try {
    createRequire(join(folder, "package.json")).resolve("hathi");
    return true;
  } catch {
    return false;
  }
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
