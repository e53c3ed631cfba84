import { spawnSync } from "node:child_process";

/**
 * Where people read the code: `repository` of package.json, else the repository that CI builds, else the remote that this clone came from.
 * Undefined if none of them is the address of a page.
 */
export function findCode(repository, env = process.env, readRemote = remoteOf) {
  const { GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: name } = env;
  return pageOf(repository?.url ?? repository) ?? pageOf(server && name && `${server}/${name}`) ?? pageOf(readRemote());
}

/** The page of a Git address, without what only Git needs; a password in it must not become public. */
function pageOf(address) {
  if (!address) return undefined;
  const [, host, path] =
    /^(?:git\+)?(?:https:\/\/|ssh:\/\/)?(?:[^@/]*@)?([\w.-]+)(?::\d+)?[:/](.+?)(?:\.git)?\/?$/.exec(address) ?? [];
  return /^(git\+)?(https|ssh):|^[\w-]+@/.test(address) && host ? `https://${host}/${path}` : undefined;
}

function remoteOf() {
  return spawnSync("git", ["remote", "get-url", "origin"], { encoding: "utf8" }).stdout?.trim();
}
