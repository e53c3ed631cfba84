import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startEmbedded } from "../src/index.ts";
import { isRoot, plainAccount, unlistedAccount } from "./support/accounts.ts";
import { startChild } from "./support/child.ts";
import { makeFolder } from "./support/folders.ts";
import { addNative, listedLinks, makeKit } from "./support/kit.ts";
import { query } from "./support/query.ts";

let kit: string;
let native: string;
beforeAll(() => {
  kit = makeKit(mkdtempSync(join(realpathSync(tmpdir()), "hathi-kit-")));
  native = addNative(kit);
});
afterAll(() => rmSync(kit, { recursive: true, force: true }));

const quick = { profile: "test" } as const;

function startAsPlainUser(dataDir: string, home: string) {
  return startChild({ kit, options: { dataDir, ...quick }, account: plainAccount, home, ownNative: true });
}

test("links that a blocked install script left out are made when the server starts", async () => {
  for (const link of listedLinks(native)) rmSync(link, { force: true });

  const child = startChild({ kit, options: { dataDir: makeFolder(), ...quick }, ownNative: true });
  expect(await child.told()).toMatchObject({ origin: "started" });
  for (const link of listedLinks(native)) expect(lstatSync(link).isSymbolicLink()).toBe(true);
});

test("where node_modules cannot be written, a copy with the links is used", async () => {
  const home = makeFolder({ owner: plainAccount });
  for (const link of listedLinks(native)) rmSync(link, { force: true });
  chmodSync(join(native, "lib"), 0o555);
  try {
    const first = await startAsPlainUser(join(home, "one"), home).told();
    expect(first).toMatchObject({ origin: "started" });
    const second = await startAsPlainUser(join(home, "two"), home).told();
    expect(second).toMatchObject({ origin: "started" });
    expect(existsSync(join(home, ".cache/hathi"))).toBe(true);
    expect(listedLinks(native).some((link) => existsSync(link))).toBe(false);
  } finally {
    chmodSync(join(native, "lib"), 0o755);
  }
});

test("a normal user gets a server in place that belongs to the user", async () => {
  const home = makeFolder({ mode: 0o700, owner: plainAccount });
  const child = startAsPlainUser(join(home, "db"), home);
  const { clusterDir, connectionString } = await child.told();

  expect(clusterDir).toBe(join(home, "db/pgdata"));
  expect(statSync(clusterDir).uid).toBe(plainAccount?.uid ?? process.geteuid?.());
  expect(await query(connectionString, "select 1 as one")).toEqual([{ one: 1 }]);
  expect(await child.stop()).toEqual({ stopped: true });
});

test("a folder of somebody else is refused with the way out", async () => {
  const dataDir = makeFolder({ mode: 0o555 });
  const { error } = await startAsPlainUser(dataDir, makeFolder({ owner: plainAccount })).told();
  expect(error).toMatchObject({ name: "EmbeddedError", code: "DATA_DIR_DENIED" });
  expect(error.message).toContain(`'${dataDir}' cannot be used by user id`);
});

test.runIf(isRoot)("root in a folder closed to others shares one server that runs without privileges", async () => {
  const closed = makeFolder({ mode: 0o700 });
  const ownKit = makeKit(join(closed, "project"));
  addNative(ownKit);
  const request = { kit: ownKit, options: { dataDir: join(ownKit, ".hathi"), ...quick }, ownNative: true };

  const first = startChild(request);
  const { clusterDir, connectionString } = await first.told();
  expect(clusterDir.startsWith(closed)).toBe(false);
  expect(statSync(clusterDir).mode & 0o777).toBe(0o700);
  expect(statSync(clusterDir).uid).toBeGreaterThan(0);
  await query(connectionString, "create table kept as select 42 as answer");
  const second = startChild(request);
  expect(await second.told()).toMatchObject({ origin: "attached", connectionString });
  expect(await first.stop()).toEqual({ stopped: false });
  expect(await second.stop()).toEqual({ stopped: true });

  const third = await startChild(request).told();
  expect(third).toMatchObject({ origin: "started", clusterDir });
  expect(await query(third.connectionString, "select answer from kept")).toEqual([{ answer: 42 }]);
});

test.runIf(isRoot)("root runs the cluster of a normal user as that user", async () => {
  const home = makeFolder({ owner: plainAccount });
  const options = { dataDir: join(home, "db"), ...quick };
  const theirs = startAsPlainUser(options.dataDir, home);
  const { clusterDir } = await theirs.told();
  await theirs.stop();

  const ours = startChild({ kit, options });
  expect(await ours.told()).toMatchObject({ origin: "started", clusterDir });
  expect(statSync(join(clusterDir, "postmaster.pid")).uid).toBe(plainAccount?.uid);
  expect(await ours.stop()).toEqual({ stopped: true });
  expect(await startAsPlainUser(options.dataDir, home).told()).toMatchObject({ origin: "started" });
});

test.runIf(isRoot)("a user id without an account is told to set DATABASE_URL", async () => {
  const home = makeFolder();
  chownSync(home, unlistedAccount.uid, unlistedAccount.gid);
  const options = { dataDir: join(home, "db") };
  const { error } = await startChild({ kit, options, account: unlistedAccount, home, ownNative: true }).told();
  expect(error).toMatchObject({ name: "EmbeddedError", code: "NO_ACCOUNT" });
  expect(error.message).toMatch(/user id 54321.*DATABASE_URL/);
});

test("a platform without a binary is told to set DATABASE_URL", async () => {
  const pretend = "data:text/javascript,Object.defineProperty(process,'arch',{value:'riscv64'})";
  const options = { dataDir: makeFolder() };
  const child = startChild({ kit, options, ownNative: true, nodeArgs: ["--import", pretend] });
  const { error } = await child.told();
  expect(error).toMatchObject({ name: "EmbeddedError", code: "NO_BINARY" });
  expect(error.message).toMatch(/riscv64.*DATABASE_URL/);
});

test("a binary that the machine cannot execute is named, with DATABASE_URL as the way out", async () => {
  const folder = makeFolder();
  mkdirSync(join(folder, "bin"));
  for (const name of ["postgres", "pg_ctl", "initdb"]) {
    // What a glibc binary looks like on Alpine: the file is there, its loader is not.
    writeFileSync(join(folder, "bin", name), "#!/no/such/loader\n", { mode: 0o755 });
  }
  await expect(startEmbedded({ dataDir: join(folder, "db"), nativeDir: folder })).rejects.toMatchObject({
    code: "NO_BINARY",
    message: expect.stringMatching(new RegExp(`${dirname(folder)}.*DATABASE_URL`)),
  });
});
