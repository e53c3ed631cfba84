// Keeps this version as `npm run release` is about to release it, so that every later one rehearses the upgrade from it. Without an
// argument: in test/upgrade/released/<version>.
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const folder = process.argv[2] ?? join(root, "test/upgrade/released", version);

const { status } = spawnSync(process.execPath, [join(root, "scripts/bundle.mjs"), folder], { stdio: "inherit" });
if (status !== 0) process.exit(status ?? 1);
// What workers and migrations do not need.
const files = readdirSync(folder, { recursive: true }).filter((file) => file.endsWith(".map"));
for (const file of [...files, "cli", "metrics", "testing", "schema.sql"])
  rmSync(join(folder, file), { recursive: true, force: true });
