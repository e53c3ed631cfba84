import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { makeProject } from "../support/project.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const complete = (...args: string[]) =>
  spawnSync(process.execPath, [join(root, "scripts/complete-lock.mjs"), ...args], { cwd: root, encoding: "utf8" });

test("the lock files name the packages of every platform, and no registry", () => {
  expect(complete("--check")).toMatchObject({ stdout: "", stderr: "", status: 0 });
});

test("npm ci accepts the lock file", { timeout: 120_000 }, () => {
  const flags = ["--dry-run", "--ignore-scripts", "--no-audit", "--no-fund", "--offline"];
  const { status, stderr } = spawnSync("npm", ["ci", ...flags], { cwd: root, encoding: "utf8" });
  expect(status, stderr).toBe(0);
});

test("an incomplete lock is reported and completed from the names of the packages", async () => {
  const names = ["@tool/linux-arm64-musl", "@tool/win32-x64-msvc", "@tool/linux-x64-gnu"];
  const optionalDependencies = Object.fromEntries(names.map((name) => [name, "1.2.3"]));
  const lock = {
    lockfileVersion: 3,
    packages: {
      "": { devDependencies: { tool: "1.2.3" } },
      "node_modules/tool": {
        version: "1.2.3",
        dev: true,
        resolved: "https://registry.test/tool.tgz",
        optionalDependencies,
      },
      "node_modules/@tool/linux-x64-gnu": { version: "1.2.3", dev: true, optional: true },
    },
  };
  const project = await makeProject({ "package-lock.json": JSON.stringify(lock, null, 2) });
  const file = project.path("package-lock.json");
  const before = readFileSync(file, "utf8");
  expect(complete("--check", file)).toMatchObject({
    status: 1,
    stdout: expect.stringContaining("address of node_modules/tool, @tool/linux-arm64-musl, @tool/win32-x64-msvc"),
  });
  expect(readFileSync(file, "utf8")).toBe(before);

  expect(complete(file).status).toBe(0);
  const { packages } = JSON.parse(readFileSync(file, "utf8")) as { packages: Record<string, object> };
  expect(packages["node_modules/@tool/linux-arm64-musl"]).toEqual({
    version: "1.2.3",
    cpu: ["arm64"],
    dev: true,
    libc: ["musl"],
    optional: true,
    os: ["linux"],
  });
  expect(packages["node_modules/@tool/win32-x64-msvc"]).toMatchObject({ cpu: ["x64"], os: ["win32"] });
  expect(packages["node_modules/tool"]).not.toHaveProperty("resolved");
  expect(complete("--check", file).status).toBe(0);
});
