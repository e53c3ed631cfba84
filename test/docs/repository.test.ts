import { expect, test } from "vitest";
// @ts-expect-error: a module of the site, without types
import { findCode } from "../../docs/.vitepress/repository.mjs";

const page = "https://code.example/owner/name";
const inCi = { GITHUB_SERVER_URL: "https://code.example", GITHUB_REPOSITORY: "owner/name" };
const noRemote = (): string => "";

test.each([
  [{ type: "git", url: "git+https://code.example/owner/name.git" }, page],
  [page, page],
  [{ url: "git@code.example:owner/name.git" }, page],
  [undefined, undefined],
])("the site links to the repository %j of package.json as %s", (repository, expected) => {
  expect(findCode(repository, {}, noRemote)).toBe(expected);
});

test("without one in package.json, the site links to the repository that CI builds, or else to the one it was cloned from", () => {
  const remote = (): string => "https://code.example/fork/name.git\n".trim();
  expect(findCode("https://code.example/other/one", inCi, remote)).toBe("https://code.example/other/one");
  expect(findCode(undefined, inCi, remote)).toBe(page);
  expect(findCode(undefined, {}, remote)).toBe("https://code.example/fork/name");
});

test.each([
  ["git@code.example:owner/name.git", page],
  ["ssh://git@code.example:2222/owner/name.git", page],
  ["https://user:secret@code.example/owner/name", page],
  ["/srv/git/name.git", undefined],
  ["../name", undefined],
  ["file:///srv/git/name.git", undefined],
  ["C:\\code\\name", undefined],
  ["", undefined],
])("a clone of %j is linked to as %s", (remote, expected) => {
  expect(findCode(undefined, {}, () => remote)).toBe(expected);
});
