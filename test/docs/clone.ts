import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { type Account, giveTo, makeHome } from "./account.ts";
import { blocksOf, root, sectionOf } from "./pages.ts";

/** What was committed, as somebody who has just cloned it finds it in a home directory with nothing else in it. */
export interface Clone {
  readonly folder: string;
  readonly home: string;
  /** The two commands of its README, word for word. */
  readonly commands: readonly string[];
}

export async function cloneFor(account: Account): Promise<Clone> {
  const home = await makeHome(account);
  const folder = join(home, "hathi");
  // Git refuses to read a repository of somebody else, so the clone changes hands afterwards.
  await promisify(execFile)("git", ["clone", "--quiet", pathToFileURL(root).href, folder]);
  if (account.uid !== undefined) await giveTo(account.uid, folder);
  const section = sectionOf(await readFile(join(folder, "README.md"), "utf8"), "Two commands");
  return { folder, home, commands: blocksOf(section).map(({ text }) => text.trim()) };
}
