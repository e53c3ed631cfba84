import { randomBytes } from "node:crypto";
import { onTestFinished } from "vitest";
import type { TestDatabase } from "./database.ts";

/** The URL of a role that has these settings and owns the database. */
export async function oddRole(database: TestDatabase, settings: readonly string[]): Promise<string> {
  const role = `odd_${randomBytes(5).toString("hex")}`;
  const [row] = await database.query<{ owner: string }>("select current_user as owner");
  // As a member of the owner it is bound by no policy and may change everything, but it is no superuser.
  await database.pool.query(`create role ${role} login bypassrls password 'odd' in role ${row!.owner}`);
  await database.pool.query(`alter database ${database.name} owner to ${role}`);
  for (const setting of settings) await database.pool.query(`alter role ${role} set ${setting}`);
  onTestFinished(async () => {
    await database.pool.query(
      `alter database ${database.name} owner to current_user; drop owned by ${role}; drop role ${role}`,
    );
  });
  const url = new URL(database.url);
  url.username = role;
  url.password = "odd";
  return url.href;
}
