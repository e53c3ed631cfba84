import { expect, test } from "vitest";
// @ts-expect-error: a module of the site, without types
import { pageOf } from "../../docs/.vitepress/repository.mjs";

test.each([
  [{ type: "git", url: "git+https://code.example/owner/name.git" }, "https://code.example/owner/name"],
  ["https://code.example/owner/name", "https://code.example/owner/name"],
  [{ url: "git@code.example:owner/name.git" }, undefined],
  [undefined, undefined],
])("the site links to the repository %j as %s", (repository, page) => {
  expect(pageOf(repository)).toBe(page);
});
