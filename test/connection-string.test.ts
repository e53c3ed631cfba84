import { expect, onTestFinished, test, vi } from "vitest";
import { readConnectionString } from "../src/connection-string.ts";
import { ConfigError } from "../src/errors.ts";
import { makeWorkerUtils } from "../src/index.ts";
import { freshDatabase } from "./support/database.ts";

test.each([
  "postgres://me:secret@host:5432/db",
  "postgresql:///db",
  "POSTGRES://host/db",
  "socket:/tmp?db=x",
  "/tmp db",
])("'%s' is handed to pg as it is", (text) => {
  expect(readConnectionString(text)).toEqual({ connectionString: text });
});

test.each(["my_db", "my-db.2", "größe", "MyDb"])("'%s' is the name of a database", (text) => {
  expect(readConnectionString(text)).toEqual({ database: text });
});

test.each([
  ["mysql://me:secret@host/db", "The connection string starts with 'mysql:'; it should look like postgres://"],
  [
    "host=localhost password=secret",
    "The connection string is a list of keywords (host=… dbname=…); it should look like",
  ],
  [
    "me:secret@host/db",
    "it should look like postgres://user:password@host:5432/database, or be the name of a database",
  ],
  ['"postgres://me:secret@host/db"', "begins and ends with a quote; leave the quotes out"],
  ["secret host", "neither a URL nor the name of a database"],
  ["secret?sslmode=require", "neither a URL nor the name of a database"],
])("'%s' is refused without repeating it", (text, message) => {
  const read = (): unknown => readConnectionString(text);
  expect(read).toThrow(ConfigError);
  expect(read).toThrow(message);
  expect(read).not.toThrow("secret");
});

test("a bare name, as an option or as DATABASE_URL, is a database on the default host", async () => {
  const db = await freshDatabase();
  const { hostname, port, username, password } = new URL(db.url);
  vi.stubEnv("PGHOST", hostname);
  vi.stubEnv("PGPORT", port);
  vi.stubEnv("PGUSER", username);
  vi.stubEnv("PGPASSWORD", password);
  vi.stubEnv("DATABASE_URL", db.name);
  onTestFinished(() => void vi.unstubAllEnvs());
  for (const options of [{ connectionString: db.name }, {}]) {
    const utils = await makeWorkerUtils(options);
    onTestFinished(() => utils.release());
    await utils.addJob("greet", {});
  }
  expect(await db.jobs()).toHaveLength(2);
});
