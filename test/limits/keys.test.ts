import { expect, test, vi } from "vitest";
import { utilsOf } from "../control/kit.ts";
import { freshDatabase } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { heldTask, startWorker } from "../worker/kit.ts";

vi.setConfig({ testTimeout: 60_000 });

const long = "ü'\\".repeat(5_000);

/** Payloads as JSON text; those in one row have the same key. */
const keys: readonly (readonly string[])[] = [
  ['{"k":7}', '{"k":"7"}'],
  ['{"k":7.5}', '{"k":"7.5"}'],
  ['{"k":-1e400}', '{"k":-1e400}'],
  ['{"k":true}', '{"k":"true"}'],
  ['{"k":{"a":[1,null]}}', '{"k":{"a":[1,null]}}'],
  ['{"k":[]}', '{"k":[]}'],
  ['{"k":null}', '{"k":""}', "{}", "[1]", '"text"', "null", "12"],
  ['{"k":"null"}', '{"k":"null"}'],
  [JSON.stringify({ k: long }), JSON.stringify({ k: long })],
  [JSON.stringify({ k: `${long}.` }), JSON.stringify({ k: `${long}.` })],
  ['{"k":"\\u0000"}', '{"k":"\\u0000"}'],
  ['{"k":"a\\u0000b"}', '{"k":"a\\u0000b"}'],
  ['{"k":"\\ud800"}', '{"k":"\\ud800"}'],
  ['{"k":"a","other":"\\u0000 \\ud800"}', '{"k":"a"}'],
  ['{"k":"\\u00e9"}', '{"k":"é"}'],
  ['{"k":"\\ud83d\\ude00"}', '{"k":"😀"}'],
  ...["*", "-", "=", "'; drop table x --", "%s $1 {path}", "\n\t", "\u0001", '"', "\\", " ", "{}"].map((k) => [
    JSON.stringify({ k }),
    JSON.stringify({ k }),
  ]),
];

test.each([false, true])(
  "whatever the payload has for a key, each key has its limit (indexes first: %s)",
  async (isIndexed) => {
    const db = await freshDatabase();
    const utils = await utilsOf(db);
    const held = heldTask();
    const add = async (): Promise<void> => {
      for (const payloads of keys)
        for (const payload of payloads) await db.query("select graphile_worker.add_job('sync', $1::json)", [payload]);
    };
    const built = `
    select from pg_index join pg_class on pg_class.oid = indexrelid
    where indisvalid and relname ~ '^_hathi_limit_[rw]_'`;
    const areBuilt = async (): Promise<boolean> => (await db.query(built)).length === 2;
    if (!isIndexed) await add();
    const worker = await startWorker(
      db,
      { sync: held.task },
      { concurrency: 100, taskOptions: { sync: { concurrency: { limit: 1, key: "k" } } } },
    );
    if (isIndexed) {
      await until(areBuilt, { what: "the indexes are built" });
      await add();
    }
    await held.begun(keys.length);
    await until(areBuilt, { what: "the indexes are built" });

    // One job of each key runs, and each of the others can say why it does not.
    const jobs = await db.jobs();
    let first = 0;
    for (const payloads of keys) {
      const mine = jobs.slice(first, first + payloads.length);
      first += payloads.length;
      expect(
        mine.filter(({ locked_at }) => locked_at !== null),
        payloads[0]!.slice(0, 50),
      ).toHaveLength(1);
      const { reasons } = await utils.explainJob(mine.find(({ locked_at }) => locked_at === null)!.id);
      expect(reasons[0], payloads[0]!.slice(0, 50)).toMatchObject({ kind: "limited" });
    }
    // What is set for a key finds it, however long or odd it is.
    for (const [n, key] of [long, "'; drop table x --", "é", 7].entries()) {
      await utils.setLimit("sync", { key, limit: 2 });
      await held.begun(keys.length + n + 1);
    }
    await expect(utils.setLimit("sync", { key: "\u0000", limit: 2 })).rejects.toThrow("'key'");
    expect(held.started).toHaveLength(keys.length + 4);
    held.releaseAll();
    await worker.completed(keys.flat().length);
  },
);
