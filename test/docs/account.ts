import { execFile } from "node:child_process";
import { chmod, chown, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { onTestFinished } from "vitest";
import { removeClusters } from "../support/clusters.ts";
import { makeFolder } from "./packed.ts";

/** Who follows the documents. */
export interface Account {
  readonly name: string;
  /** Missing for the account that runs the tests. */
  readonly uid?: number;
}

const isRoot = process.getuid?.() === 0;

/** Root and somebody without special rights; where we are nobody special ourselves, only that one can be had. */
export const accounts: readonly Account[] = isRoot
  ? [{ name: "root" }, { name: "a normal user", uid: await readNobody() }]
  : [{ name: "a normal user" }];

/** An empty home directory that is closed to others. Servers that a failed test has left below it are ended. */
export async function makeHome({ uid }: Account): Promise<string> {
  const { folder, remove } = await makeFolder("home");
  onTestFinished(async () => {
    await removeClusters(folder);
    await remove();
  });
  await chmod(folder, 0o700);
  if (!process.env.FOLLOW_FRESH) await writeFile(join(folder, ".npmrc"), await makeNpmSettings(uid));
  if (uid !== undefined) await giveTo(uid, folder);
  return folder;
}

/** What a login gives to a program on a machine with Node and npm, and nothing else. */
export function freshEnvironment(home: string): NodeJS.ProcessEnv {
  const folders = [
    dirname(process.execPath),
    ..."/usr/local/sbin /usr/local/bin /usr/sbin /usr/bin /sbin /bin".split(" "),
  ];
  // What a network asks of everything that goes through it: its proxies, and the certificate that they show.
  const network = Object.entries(process.env).filter(([name]) =>
    /^(https?_proxy|no_proxy|node_extra_ca_certs)$/i.test(name),
  );
  return { PATH: folders.join(":"), HOME: home, ...Object.fromEntries(network) };
}

/** Makes an account the owner of a folder and all in it. */
export async function giveTo(uid: number, folder: string): Promise<void> {
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isSymbolicLink()) await chown(join(entry.parentPath, entry.name), uid, uid);
  }
  await chown(folder, uid, uid);
}

/** So that the tests do not fetch the same packages again and again. `npm run follow` does without. */
async function makeNpmSettings(uid = process.getuid?.()): Promise<string> {
  const { stdout: registry } = await promisify(execFile)("npm", ["config", "get", "registry"]);
  const cache = join(tmpdir(), `hathi-npm-${uid ?? "cache"}`);
  await mkdir(cache, { recursive: true, mode: 0o700 });
  if (uid !== undefined) await chown(cache, uid, uid);
  return `registry=${registry.trim()}\ncache=${cache}\nprefer-offline=true\naudit=false\nfund=false\n`;
}

async function readNobody(): Promise<number> {
  const id = /^nobody:[^:]*:(\d+):/m.exec(await readFile("/etc/passwd", "utf8"))?.[1];
  if (id === undefined) throw new Error("There is no account 'nobody' here to follow the documents as a normal user.");
  return Number(id);
}
