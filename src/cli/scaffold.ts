export type Language = "ts" | "js";

/** What `hathi init` writes, by name. */
export function scaffoldFiles(language: Language): Readonly<Record<string, string>> {
  return language === "ts"
    ? { "tasks/hello.ts": typescriptTask, crontab, "hathi.config.ts": typescriptConfig }
    : { "tasks/hello.mjs": javascriptTask, crontab, "hathi.config.mjs": javascriptConfig };
}

const crontab = `# minute hour day month weekday  task  ?options  {payload}   (times are UTC)
# Every five minutes; runs that were missed in the last hour are made up for:
*/5 * * * *  hello  ?fill=1h  { name: "crontab" }
`;

const typescriptTask = `import { defineTask } from "hathi";

/** Does the work of all jobs called "hello". If it throws, the job is tried again later. */
export default defineTask({
  identifier: "hello",
  run: async ({ name = "world" }: { name?: string }, { logger }) => {
    logger.info(\`Hello, \${name}!\`);
  },
});
`;

const javascriptTask = `import { defineTask } from "hathi";

/** Does the work of all jobs called "hello". If it throws, the job is tried again later. */
export default defineTask({
  identifier: "hello",
  run: async (/** @type {{ name?: string }} */ { name = "world" }, { logger }) => {
    logger.info(\`Hello, \${name}!\`);
  },
});
`;

const settings = `{
  worker: {
    // connectionString: process.env.DATABASE_URL,
    concurrentJobs: 10,
    // Jobs of a worker that died are given to another one.
    recovery: true,
    // What became of each job is kept for a while; 'npx hathi history' and the dashboard show it.
    history: "outcomes",
  },
}`;

const typescriptConfig = `import type {} from "hathi";

const preset: GraphileConfig.Preset = ${settings};

export default preset;
`;

const javascriptConfig = `/// <reference types="hathi" />

/** @type {GraphileConfig.Preset} */
const preset = ${settings};

export default preset;
`;
