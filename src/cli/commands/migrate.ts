import { describeMigration } from "../../db/migrate.ts";
import { compileSharedOptions } from "../../runner/compile.ts";
import { openDatabase } from "../../runner/open-database.ts";
import { runMigrations } from "../../runner/run-migrations.ts";
import { defineCommand } from "../command.ts";
import { databaseFlags, jsonFlag } from "../flags.ts";
import { quietLogger } from "../open-queue.ts";
import { resolveOptions } from "../resolve-options.ts";

export const migrate = defineCommand({
  command: "migrate",
  describe: "Install the schema, or bring it up to date",
  flags: {
    ...databaseFlags,
    ...jsonFlag,
    "dry-run": { type: "boolean", default: false, describe: "Print the SQL, change nothing" },
  },
  async run(args, terminal) {
    const { options, connection } = await resolveOptions(args, { logger: quietLogger() });
    try {
      const compiled = compileSharedOptions(options);
      const { database, release } = openDatabase(compiled);
      const schema = compiled.settings.schema;
      try {
        const sql = await database.withPgClient((client) => describeMigration({ client, schema }));
        if (!args["dry-run"]) await runMigrations(options);
        if (args.json) return terminal.printJson({ schema, isUpToDate: sql === "", ...(args["dry-run"] && { sql }) });
        if (args["dry-run"])
          return sql === "" ? terminal.note(`Schema '${schema}' is up to date.`) : terminal.print(sql);
        terminal.print(sql === "" ? `Schema '${schema}' was up to date.` : `Schema '${schema}' is now up to date.`);
      } finally {
        await release();
      }
    } finally {
      await connection.release();
    }
  },
});
