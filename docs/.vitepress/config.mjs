import { defineConfig } from "vitepress";
import { slugOf } from "./slug.mjs";
import { stackWideTables } from "./tables.mjs";

const page = (text, link) => ({ text, link });

export default defineConfig({
  title: "Hathi",
  description: "A job queue for Node.js that lives in your PostgreSQL database",
  lang: "en-GB",
  // Any folder of any server will do, so pages keep their endings.
  cleanUrls: false,
  base: process.env.DOCS_BASE ?? "/",
  head: [["link", { rel: "icon", type: "image/svg+xml", href: `${process.env.DOCS_BASE ?? "/"}mark.svg` }]],
  markdown: {
    languageAlias: { crontab: "sh" },
    anchor: { slugify: slugOf },
    config: (md) => {
      showFileNames(md);
      stackWideTables(md);
    },
  },
  themeConfig: {
    logo: "/mark.svg",
    search: { provider: "local" },
    outline: [2, 3],
    nav: [
      page("Getting started", "/getting-started"),
      page("Guides", "/jobs-and-keys"),
      page("Reference", "/reference/options"),
      page("Comparison", "/comparison"),
    ],
    sidebar: [
      {
        text: "Start",
        items: [
          page("Getting started", "/getting-started"),
          page("Migrating from Graphile Worker", "/migrating-from-graphile-worker"),
          page("Comparison", "/comparison"),
        ],
      },
      {
        text: "Jobs",
        items: [
          page("Jobs and keys", "/jobs-and-keys"),
          page("Queues", "/queues"),
          page("Scheduling", "/scheduling"),
          page("Cron and time zones", "/cron-and-time-zones"),
          page("Batch jobs", "/batch-jobs"),
        ],
      },
      {
        text: "Code",
        items: [
          page("Typed tasks", "/typed-tasks"),
          page("Hooks and plugins", "/hooks-and-plugins"),
          page("Testing", "/testing"),
        ],
      },
      {
        text: "Production",
        items: [
          page("Deployment", "/deployment"),
          page("Crash recovery", "/crash-recovery"),
          page("Performance and scaling", "/performance-and-scaling"),
        ],
      },
      {
        text: "Reference",
        items: [
          page("Options", "/reference/options"),
          page("Command line", "/reference/cli"),
          page("SQL", "/reference/sql"),
          page("Events", "/reference/events"),
          page("Errors", "/reference/errors"),
        ],
      },
      { text: "Inside", items: [page("How it works", "/internals"), page("Job states", "/job-states")] },
    ],
  },
});

/** A block that stands for a file (```js [add.mjs]) says so above it. */
function showFileNames(md) {
  const { fence } = md.renderer.rules;
  md.renderer.rules.fence = (tokens, index, ...rest) => {
    const [, name] = /\[(.+?)\]/.exec(tokens[index].info) ?? [];
    const title = name === undefined ? "" : `<p class="file-name">${md.utils.escapeHtml(name)}</p>`;
    return title + fence(tokens, index, ...rest);
  };
}
