import { defineCommand } from "../command.ts";
import { readDashboardArgs, startDashboard } from "../dashboard-flags.ts";
import { databaseFlags } from "../flags.ts";
import { resolveOptions } from "../resolve-options.ts";
import { untilSignal } from "../until-signal.ts";

export const dashboard = defineCommand({
  command: "dashboard",
  describe: "Serve a web page that shows the queue and lets you act on it",
  flags: {
    ...databaseFlags,
    port: { alias: "p", type: "number", requiresArg: true, describe: "The port (default: 4000, or any that is free)" },
    host: {
      type: "string",
      requiresArg: true,
      describe: "The address to serve it on (default: 127.0.0.1, this machine only); others need HATHI_DASHBOARD_TOKEN",
    },
    "read-only": { type: "boolean", default: false, describe: "Permit no change at all" },
    title: { type: "string", requiresArg: true, describe: "What the page calls this installation, such as production" },
  },
  async run(args, terminal) {
    const settings = readDashboardArgs({ ...args, readOnly: args["read-only"] }, "port");
    const { options, connection } = await resolveOptions(args);
    terminal.note(`Using ${connection.description}.`);
    try {
      // Whoever only looks must not change the schema; but an embedded one is theirs, and may be new.
      const server = await startDashboard(options, settings, connection.isEmbedded);
      terminal.print(`The dashboard is at ${server.url}`);
      await untilSignal();
      await server.close();
    } finally {
      await connection.release();
    }
  },
});
