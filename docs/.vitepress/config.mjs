import { readFileSync } from "node:fs";
import { defineConfig } from "vitepress";
import { findCode } from "./repository.mjs";
import { guides, page, sidebar } from "./sidebar.mjs";
import { slugOf } from "./slug.mjs";
import { stackWideTables } from "./tables.mjs";

const { version, repository } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
const code = findCode(repository);

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
    // Of the dark ones, the one whose comments can be read.
    theme: { light: "github-light", dark: "github-dark-default" },
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
      { ...page("Guides", "/jobs-and-keys"), activeMatch: guides.map(({ link }) => `^${link}`).join("|") },
      { ...page("Reference", "/reference/options"), activeMatch: "^/reference/" },
      page("Comparison", "/comparison"),
      page(`v${version}`, "/changelog"),
    ],
    ...(code && { socialLinks: [{ icon: "github", link: code }] }),
    sidebar,
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
