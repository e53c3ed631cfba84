import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { readAppFiles } from "../../src/dashboard/server/app-files.ts";

test("the browser's part is below 80 kB compressed, and asks for nothing from elsewhere", () => {
  const files = readAppFiles().map(({ name, base64 }) => ({ name, content: Buffer.from(base64, "base64") }));
  const bytes = files.reduce((sum, { content }) => sum + gzipSync(content).length, 0);
  expect(bytes).toBeGreaterThan(20_000);
  expect(bytes).toBeLessThan(80_000);
  for (const { name, content } of files) {
    if (name.endsWith(".html")) expect(content.toString(), name).not.toMatch(/(?:src|href)="(?:https?:)?\/\//);
    if (name.endsWith(".css")) expect(content.toString(), name).not.toMatch(/@import|url\("?https?:/);
  }
});

test("what it is made of is nothing that the library's users install", () => {
  const { dependencies = {}, peerDependencies = {} } = JSON.parse(
    readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
  ) as Record<string, Record<string, string> | undefined>;
  for (const name of ["preact", "uplot", "esbuild"])
    expect({ ...dependencies, ...peerDependencies }).not.toHaveProperty(name);
});
