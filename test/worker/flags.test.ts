import { expect, test } from "vitest";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { startWorker } from "./kit.ts";

async function addFlagged(db: TestDatabase): Promise<void> {
  await db.query(`
    select graphile_worker.add_job('t', json_build_object('name', name), flags => flags)
    from (values ('plain', null), ('a', array['a']), ('b', array['b']), ('ab', array['a', 'b'])) as spec (name, flags)`);
}

const localQueue = { preset: { worker: { localQueue: { size: 10 } } } };
const cases = [
  ["null", { forbiddenFlags: null }, ["plain", "a", "b", "ab"]],
  ["an empty array", { forbiddenFlags: [] }, ["plain", "a", "b", "ab"]],
  ["an array", { forbiddenFlags: ["a"] }, ["plain", "b"]],
  ["a function", { forbiddenFlags: () => ["a", "b"] }, ["plain"]],
  ["a function that gives null", { forbiddenFlags: () => null }, ["plain", "a", "b", "ab"]],
  ["an async function", { forbiddenFlags: async () => ["b"] }, ["plain", "a"]],
  ["accepted flags", { acceptedFlags: ["a"] }, ["a", "ab"]],
  ["accepted and forbidden flags", { acceptedFlags: ["a"], forbiddenFlags: ["b"] }, ["a"]],
] as const;

test.each(
  cases.flatMap(([name, options, expected]) => [
    [name, options, expected] as const,
    [`${name}, with a local queue`, { ...options, ...localQueue }, expected] as const,
  ]),
)("flags: %s", async (_name, options, expected) => {
  const db = await freshDatabase();
  await addFlagged(db);
  const names: string[] = [];
  const { runner, completed } = await startWorker(
    db,
    { t: ({ name }) => void names.push(name) },
    options as Parameters<typeof startWorker>[2],
  );
  await completed(expected.length);
  await runner.stop();
  expect(names).toEqual(expected);
  const left = await db.jobs();
  expect(left).toHaveLength(4 - expected.length);
  expect(left.every(({ attempts, locked_by }) => attempts === 0 && locked_by === null)).toBe(true);
});

test("the flags are asked for before every look", async () => {
  const db = await freshDatabase();
  let forbidden: string[] | null = ["a"];
  const { runner, completed, pool, nth } = await startWorker(
    db,
    { t: () => undefined },
    { forbiddenFlags: async () => forbidden },
  );
  await nth("worker:getJob:empty");
  await runner.addJob("t", {}, { flags: ["a"] });
  await nth("worker:getJob:empty", 2);
  forbidden = null;
  pool().nudge(1);
  await completed(1);
});

test("a function for flags that throws is reported, and asked again", async () => {
  const db = await freshDatabase();
  let isBroken = true;
  const { runner, completed, nth, pool } = await startWorker(
    db,
    { t: () => undefined },
    {
      forbiddenFlags: () => {
        if (isBroken) throw new Error("no flags today");
        return null;
      },
    },
  );
  await runner.addJob("t", {});
  const { error } = await nth("worker:getJob:error");
  expect(error).toMatchObject({ message: "no flags today" });
  isBroken = false;
  pool().nudge(1);
  await completed(1);
});
