import { SchemaTooOldError } from "../../index.ts";
import { defineCommand } from "../command.ts";
import { databaseFlags, jsonFlag } from "../flags.ts";
import { quietLogger, withUtils } from "../with-utils.ts";

export const migrate = defineCommand({
  command: "migrate",
  describe: "Install the schema, or bring it up to date",
  flags: {
    ...databaseFlags,
    ...jsonFlag,
    "dry-run": { type: "boolean", default: false, describe: "Print the SQL, change nothing" },
  },
  run(args, terminal) {
    const dryRun = args["dry-run"];
    // What the migration does and waits for goes to stderr, so that stdout carries nothing but the answer.
    const logger = quietLogger((message) => terminal.note(message));
    return withUtils(
      args,
      async (utils, { connection }) => {
        const { schema } = utils;
        try {
          const sql = await utils.planMigration();
          if (!dryRun) await utils.migrate();
          if (args.json) return terminal.printJson({ schema, isUpToDate: sql === "", ...(dryRun && { sql }) });
          if (dryRun) return sql === "" ? terminal.note(`Schema '${schema}' is up to date.`) : terminal.print(sql);
          terminal.print(sql === "" ? `Schema '${schema}' was up to date.` : `Schema '${schema}' is now up to date.`);
        } catch (error) {
          const url = connection.connectionString;
          if (error instanceof SchemaTooOldError && url !== undefined && url !== process.env.DATABASE_URL) {
            const command = `${error.command} --connection '${withoutPassword(url).replaceAll("'", "'\\''")}'`;
            terminal.note(`For this database (set PGPASSWORD if it needs one): ${command}`);
          }
          throw error;
        }
      },
      { logger },
    );
  },
});

function withoutPassword(url: string): string {
  return url.replace(/(\/\/[^/:@]*):[^/@]*@/, "$1@");
}
