import { access, appendFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { defineCommand } from "../command.ts";
import { jsonFlag } from "../flags.ts";
import { UsageError } from "../usage-error.ts";

export const init = defineCommand({
  command: "init",
  describe: "Write a first task, a crontab and a config into this folder",
  flags: {
    ...jsonFlag,
    ts: { type: "boolean", describe: "Write TypeScript (default: if there is a tsconfig.json)" },
  },
  async run(args, terminal) {
    const folder = process.cwd();
    const isTypeScript = args.ts ?? (await exists(join(folder, "tsconfig.json")));
    const files = isTypeScript ? typescriptFiles : javascriptFiles;
    for (const name of Object.keys(files)) {
      if (await exists(join(folder, name))) throw new UsageError(`'${name}' is already there; nothing was written.`);
    }
    for (const [name, text] of Object.entries(files)) {
      await mkdir(dirname(join(folder, name)), { recursive: true });
      await writeFile(join(folder, name), text);
    }
    await ignoreDataFolder(folder);
    if (args.json) return terminal.printJson({ files: Object.keys(files) });
    for (const name of Object.keys(files)) terminal.print(`wrote ${name}`);
    terminal.print(
      "\nStart a worker with 'npx hathi', and in another terminal: npx hathi add hello --payload '{\"name\":\"world\"}'",
    );
  },
});

/** The embedded database of this folder is nobody else's business. */
async function ignoreDataFolder(folder: string): Promise<void> {
  const file = join(folder, ".gitignore");
  const text = await readFile(file, "utf8").catch(() => "");
  if (text.split("\n").some((line) => /^\/?\.hathi\/?$/.test(line.trim()))) return;
  await appendFile(file, `${text === "" || text.endsWith("\n") ? "" : "\n"}.hathi/\n`);
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

const crontab = `# minute hour day month weekday  task  ?options  {payload}   (times are UTC)
# Every five minutes; runs that were missed in the last hour are made up for:
*/5 * * * *  hello  ?fill=1h  { name: "crontab" }
`;

const config = (
  typed: boolean,
): string => `${typed ? 'import type {} from "hathi";\n\n' : ""}${typed ? "" : "/** @type {import('hathi').WorkerPreset} */\n"}const preset${typed ? ": GraphileConfig.Preset" : ""} = {
  worker: {
    // connectionString: process.env.DATABASE_URL,
    concurrentJobs: 10,
    // Jobs of a worker that died are given to another one.
    recovery: true,
  },
};

export default preset;
`;

const javascriptFiles: Record<string, string> = {
  "tasks/hello.mjs": `/** Does the work of all jobs called "hello". If it throws, the job is tried again later. */
export default async function hello(payload, helpers) {
  const { name = "world" } = payload;
  helpers.logger.info(\`Hello, \${name}!\`);
}
`,
  crontab,
  "hathi.config.mjs": config(false).replace(
    "/** @type {import('hathi').WorkerPreset} */",
    "/** @type {GraphileConfig.Preset} */",
  ),
};

const typescriptFiles: Record<string, string> = {
  "tasks/hello.ts": `import type { Task } from "hathi";

declare global {
  namespace GraphileWorker {
    interface Tasks {
      hello: { name?: string };
    }
  }
}

/** Does the work of all jobs called "hello". If it throws, the job is tried again later. */
const hello: Task<"hello"> = async ({ name = "world" }, helpers) => {
  helpers.logger.info(\`Hello, \${name}!\`);
};

export default hello;
`,
  crontab,
  "hathi.config.ts": config(true),
};
