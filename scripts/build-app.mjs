// Builds the browser's part of the dashboard: a page, a script and a stylesheet. What it is made of is included, so that the library's
// users install nothing for it.
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url));
const source = join(root, "src/dashboard/app");

/** Writes `index.html` and `assets/` into the folder. */
export async function buildApp(folder) {
  const { outputFiles } = await build({
    entryPoints: [join(source, "app.tsx"), join(source, "styles/app.css")],
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    // The browsers that have `light-dark` and `dialog` have the rest of the stylesheet too.
    supported: { nesting: true },
    jsx: "automatic",
    jsxImportSource: "preact",
    tsconfig: join(source, "tsconfig.json"),
    banner: { js: licence("preact") },
    external: ["data:*"],
    outdir: folder,
    entryNames: "[name]",
    write: false,
  });
  const assets = join(folder, "assets");
  mkdirSync(assets, { recursive: true });
  const names = Object.fromEntries(
    outputFiles.map(({ path, contents }) => [/\w+$/.exec(path)[0], name(path, contents)]),
  );
  for (const { path, contents } of outputFiles) writeFileSync(join(assets, name(path, contents)), contents);
  cpSync(join(root, "docs/public/mark.svg"), join(assets, "mark.svg"));
  writeFileSync(join(folder, "index.html"), page(names));
}

/** With a hash of its content, so that a browser may cache it without limit. */
function name(path, contents) {
  const hash = createHash("sha256").update(contents).digest("hex").slice(0, 10);
  return `app-${hash}.${/\w+$/.exec(path)[0]}`;
}

/** The server puts a `<base>` in place of the comment. */
function page({ js, css }) {
  return `<!doctype html>
<html lang="en">
<head>
<!--base-->
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>Hathi</title>
<link rel="icon" href="assets/mark.svg" type="image/svg+xml">
<link rel="stylesheet" href="assets/${css}">
<script type="module" src="assets/${js}"></script>
</head>
<body>
<div id="app"></div>
<noscript>The dashboard needs JavaScript. The command line shows the same: npx hathi jobs</noscript>
</body>
</html>
`;
}

function licence(packageName) {
  const folder = dirname(createRequire(import.meta.url).resolve(`${packageName}/package.json`));
  const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  return `/*! ${packageName} ${version}\n${readFileSync(join(folder, "LICENSE"), "utf8").trim()} */`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await buildApp(join(root, "dist/dashboard/app"));
