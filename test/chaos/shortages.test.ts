import { spawnSync } from "node:child_process";
import { chownSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { startPrivateServer } from "../support/private-server.ts";
import { until } from "../support/wait.ts";
import { Arena, longError, nothing } from "./kit.ts";

/** No outage of this run is long enough for a death, so no job has an excuse. */
const recovery = { heartbeatInterval: 300, sweepInterval: 500, sweepThreshold: 30_000, crashGrace: 20_000 };

test("too many clients: workers that get no connection go on when they get one", { timeout: 240_000 }, async () => {
  const server = await startPrivateServer({ max_connections: 20 });
  onTestFinished(() => server.remove());
  const arena = new Arena(server.url, 1);
  const workers = await Promise.all([1, 2].map(() => arena.start({ recovery, maxPoolSize: 3 })));
  const hogs: pg.Client[] = [];
  const hog = async (): Promise<boolean> => {
    const client = new pg.Client({ connectionString: server.url });
    client.on("error", () => undefined);
    hogs.push(client);
    return client.connect().then(
      () => true,
      () => false,
    );
  };
  const free = (): Promise<unknown> => Promise.all(hogs.splice(0).map((client) => client.end()));
  onTestFinished(() => void free());
  for (let round = 0; round < 2; round++) {
    await arena.addMixture(300);
    // Every connection of the workers that ends is the hogs', until there is none left to have.
    while (await hog());
    await hogs[0]!.query(`select pg_terminate_backend(pid) from pg_stat_activity
      where backend_type = 'client backend'
        and pid <> all (array[${hogs.map((client) => Reflect.get(client, "processID") ?? 0).join()}])`);
    for (const end = Date.now() + 1_000 + arena.any(1_000); Date.now() < end; )
      if (!(await hog())) await arena.rest(20);
    await free();
    await arena.ask("select 1");
  }
  expect(await arena.verdict()).toEqual(nothing);
  expect(workers.map((worker) => worker.output()).join()).toMatch(/Lost the database/);
});

/** A file system of this size that the server's account may write to; undefined where none can be mounted. */
function mountSmall(megabytes: number, account: number): string | undefined {
  const folder = mkdtempSync(join(tmpdir(), "hathi-full-"));
  const { status } = spawnSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m,mode=700`, "tmpfs", folder]);
  if (status !== 0) {
    rmSync(folder, { recursive: true });
    return undefined;
  }
  chownSync(folder, account, account);
  onTestFinished(() => {
    spawnSync("umount", ["--lazy", folder]);
    rmSync(folder, { recursive: true, force: true });
  });
  return folder;
}

test("a full disk: nothing is lost, and work goes on when there is room again", { timeout: 240_000 }, async ({
  skip,
}) => {
  const server = await startPrivateServer();
  const folder = mountSmall(32, statSync(server.clusterDir).uid);
  onTestFinished(() => server.remove());
  skip(!folder, "Only root may mount a small file system, so nothing is shown about a full disk");
  const admin = new pg.Client({ connectionString: server.url });
  await admin.connect();
  onTestFinished(() => admin.end());
  await admin.query(`create tablespace small location '${folder}'`);
  await admin.query("create database small tablespace small");
  const url = new URL(server.url);
  url.pathname = "/small";
  const arena = new Arena(url.href, 1);
  const workers = await Promise.all([1, 2].map(() => arena.start({ recovery })));
  const fill = async (): Promise<void> => {
    await arena.pool.query("create table filler (text text); alter table filler alter text set storage external");
    for (let size = 1_000_000; size > 100; size /= 2) {
      for (let code = ""; code !== "53100"; ) {
        code = await arena.pool.query("insert into filler values (repeat('x', $1))", [Math.round(size)]).then(
          () => "",
          (error: { code: string }) => error.code,
        );
      }
    }
  };
  // They fail when the disk is full, with errors that need room.
  await arena.add(Array.from({ length: 16 }, () => ({ ms: 4_000, odd: longError })));
  await arena.addMixture(300);
  await fill();
  // Adding is refused, or is done; never anything between.
  await until(() =>
    arena.addMixture(500).then(
      () => false,
      (error: { code: string }) => error.code === "53100",
    ),
  );
  await until(() => workers.some((worker) => /Lost the database.*No space left/.test(worker.output())));
  await arena.rest(1_000 + arena.any(1_000));
  await arena.pool.query("drop table filler");
  expect(await arena.verdict()).toEqual(nothing);
});
