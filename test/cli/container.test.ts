import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { loadCommands } from "../../src/cli/commands.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const read = (name: string): string => readFileSync(join(root, name), "utf8");
/** Instructions with their continuation lines joined and comments left out. */
const instructions = read("Dockerfile")
  .replaceAll(/^\s*#.*\n/gm, "")
  .replaceAll(/\\\n/g, " ")
  .split("\n")
  .map((line) => line.trim())
  .filter((line) => line !== "");

test("the image is built from files that exist, runs the program as a normal user, and is told to drain", () => {
  const copied = instructions.filter((line) => line.startsWith("COPY ") && !line.includes("--from="));
  const ignored = read(".dockerignore").trim().split("\n");
  for (const line of copied) {
    for (const source of line.split(/\s+/).slice(1, -1)) {
      expect(existsSync(join(root, source)), source).toBe(true);
      expect(ignored, source).not.toContain(source);
    }
  }
  expect(instructions).toContain("WORKDIR /worker");
  expect(instructions).toContain("USER node");
  expect(instructions).toContain("STOPSIGNAL SIGTERM");
  expect(instructions.at(-1)).toBe('ENTRYPOINT ["/usr/bin/tini", "--", "/usr/local/bin/hathi"]');
  const { bin } = JSON.parse(read("package.json")) as { bin: Record<string, string> };
  for (const [name, file] of Object.entries(bin)) {
    expect(read("Dockerfile")).toContain(`ln -s /hathi/${file.replace("./", "")} /usr/local/bin/${name}`);
  }
});

test("the composition gives the worker a database, flags it has, and files that exist", async () => {
  const { services } = parse(read("docker-compose.yml")) as {
    services: { worker: { command: string[]; volumes: string[]; environment: { DATABASE_URL: string } } };
  };
  const { command, volumes, environment } = services.worker;
  const flags = (await loadCommands([])).flatMap(({ flags }) => Object.keys(flags));
  for (const word of command.filter((part) => part.startsWith("--"))) expect(flags).toContain(word.slice(2));
  for (const volume of volumes) expect(existsSync(join(root, volume.split(":")[0]!)), volume).toBe(true);
  expect(new URL(environment.DATABASE_URL).hostname).toBe("database");
  expect(Object.keys(services)).toContain("database");
});
