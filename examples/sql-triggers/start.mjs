// Jobs that the database adds itself, with a trigger.
import { readFile } from "node:fs/promises";
import { run, runMigrations } from "hathi";
import pg from "pg";
import { openDatabase } from "../database.mjs";

const database = await openDatabase();
const { connectionString } = database;
// The trigger needs `graphile_worker.add_job`.
await runMigrations({ connectionString });

const client = new pg.Client({ connectionString });
await client.connect();
await client.query(await readFile(new URL("schema.sql", import.meta.url), "utf8"));

const runner = await run({
  connectionString,
  taskList: {
    "welcome-user": ({ email }) => {
      console.log(`Welcome, ${email}`);
      if (email === "last@example.com") void runner.stop("That was the last one");
    },
  },
});

await client.query("begin");
await client.query("insert into example_triggers.users (email) values ('nobody@example.com')");
await client.query("rollback");
await client.query("insert into example_triggers.users (email) values ('ada@example.com'), ('last@example.com')");

await runner.promise;
await client.end();
await database.stop();
