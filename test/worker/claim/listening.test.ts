import { expect, onTestFinished, test } from "vitest";
import { freshDatabase, testPool } from "../../support/database.ts";
import { until } from "../../support/wait.ts";
import { startWorker } from "../kit.ts";

test("a LISTEN that hears nothing is found out, said in one warning, and replaced by faster polling", async () => {
  const db = await freshDatabase();
  const elsewhere = await freshDatabase({ migrated: false });
  // Notifications stay within a database, so from another one nothing is ever heard: what a transaction pooler does.
  const { runner, completed, lines, nth } = await startWorker(
    db,
    { t: () => undefined },
    { listenConnectionString: elsewhere.url },
  );
  await nth("pool:listen:release");
  const warnings = (): string[] => lines.filter(({ level }) => level === "warning").map(({ message }) => message);
  expect(warnings()).toEqual([expect.stringContaining("Notifications do not arrive")]);
  for (let n = 1; n <= 2; n++) {
    await runner.addJob("t", {});
    await completed(n);
  }
  expect(warnings()).toHaveLength(1);
});

test("listenConnectionString gives LISTEN a line of its own, so that the only connection of a pool is free for work", async () => {
  const db = await freshDatabase();
  const { runner, completed, nth, lines } = await startWorker(
    db,
    { t: () => undefined },
    { pgPool: testPool(db.url, 1), listenConnectionString: db.url },
  );
  await nth("pool:listen:success");
  await nth("worker:getJob:empty", 2);
  for (let n = 1; n <= 3; n++) {
    await runner.addJob("t", {});
    await completed(n);
  }
  await runner.stop();
  expect(lines.some(({ message }) => message.includes("Notifications do not arrive"))).toBe(false);
  await until(
    async () =>
      (
        await db.query(
          "select from pg_stat_activity where datname = current_database() and query like 'LISTEN%' and pid <> pg_backend_pid()",
        )
      ).length === 0,
    { what: "the line is closed" },
  );
});

test("a LISTEN that cannot be made is tried again with longer and longer rests, and jobs run meanwhile", async () => {
  const db = await freshDatabase();
  const { runner, completed, nth, of, lines } = await startWorker(
    db,
    { t: () => undefined },
    { listenConnectionString: "postgres://127.0.0.1:1/nothing", pollInterval: 50 },
  );
  expect((await nth("pool:listen:error")).error).toMatchObject({ code: "ECONNREFUSED" });
  await runner.addJob("t", {});
  await completed(1);
  await nth("pool:listen:connecting", 3);
  expect(of("pool:listen:connecting").map(({ attempts }) => attempts)).toEqual(
    of("pool:listen:connecting").map((_, index) => index),
  );
  expect(lines.filter(({ level }) => level === "error").length).toBeLessThan(6);
  await runner.stop();
});

test("what cannot be read in a notification counts as one job; a removal wakes nobody", async () => {
  const db = await freshDatabase();
  const { nth, of, runner, completed } = await startWorker(db, { t: () => undefined });
  await nth("worker:getJob:empty", 2);
  await db.query("insert into graphile_worker._private_tasks (identifier) values ('t') on conflict do nothing");
  await db.query(`
    insert into graphile_worker._private_jobs (task_id)
    select id from graphile_worker._private_tasks where identifier = 't'`);
  await db.query(`select pg_notify('jobs:insert', '{"r":1,"count":-1}')`);
  await nth("pool:listen:notification");
  expect(of("job:start")).toEqual([]);
  await db.query("select pg_notify('jobs:insert', 'what?')");
  await completed(1);
  await runner.stop();
});

test("a worker for which the server has one connection left uses it for work, and listens when there are more", async () => {
  const db = await freshDatabase();
  const role = `${db.name}_role`;
  const [row] = await db.query<{ owner: string }>("select current_user as owner");
  await db.query(`create role ${role} login bypassrls password 'one' connection limit 1 in role ${row!.owner}`);
  onTestFinished(() => db.query(`drop role ${role}`).then(() => undefined));
  const url = new URL(db.url);
  url.username = role;
  url.password = "one";
  const { runner, completed, nth } = await startWorker(
    db,
    { t: () => undefined },
    { pgPool: testPool(url.href, 5), recovery: { enabled: false }, pollInterval: 100 },
  );
  await nth("pool:listen:error");
  await db.query("select graphile_worker.add_job('t') from generate_series(1, 3)");
  await completed(3);
  await db.query(`alter role ${role} connection limit 5`);
  await nth("pool:listen:success");
  await db.query("select graphile_worker.add_job('t')");
  await completed(4);
  await runner.stop();
});
