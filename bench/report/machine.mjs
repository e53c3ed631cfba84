import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { cpus, loadavg, release, totalmem, type } from "node:os";
import { fileURLToPath } from "node:url";
import { redisStore } from "../redis.mjs";

const rootDir = fileURLToPath(new URL("../..", import.meta.url));

/** Where, when, on what and with which versions a run was made. */
export function describeMachine({ server, systems, options }) {
  const { server_version: postgres, ...settings } = server.settings;
  const packages = [...new Set(systems.map((system) => system.package).filter(Boolean))];
  return {
    date: new Date().toISOString(),
    commit: commit(),
    machine: {
      cpu: cpus()[0]?.model.trim(),
      cores: cpus().length,
      memoryGb: Math.round(totalmem() / 2 ** 30),
      system: `${type()} ${release()}`,
      loadBefore: loadavg()[0],
    },
    versions: {
      node: process.versions.node,
      postgres,
      ...(redisStore.version() && { redis: redisStore.version() }),
      hathi: JSON.parse(readFileSync(`${rootDir}/package.json`, "utf8")).version,
      ...Object.fromEntries(packages.map((name) => [name, versionOf(name)])),
    },
    settings,
    rounds: options.rounds,
    concurrency: options.concurrency,
    limitSeconds: options.limitMs / 1000,
  };
}

function versionOf(name) {
  const lock = createRequire(import.meta.url)("../package-lock.json");
  return lock.packages[`node_modules/${name}`]?.version;
}

function commit() {
  try {
    const git = (...args) => execFileSync("git", args, { cwd: rootDir, encoding: "utf8" }).trim();
    return (
      git("rev-parse", "--short", "HEAD") + (git("status", "--porcelain", "--", "src") === "" ? "" : " with changes")
    );
  } catch {
    return undefined;
  }
}
