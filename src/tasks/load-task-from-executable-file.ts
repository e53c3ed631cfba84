import "graphile-config";
import { constants } from "node:fs";
import type {} from "../hooks/plugin.ts";

const platforms: readonly NodeJS.Platform[] = ["darwin", "freebsd", "linux", "openbsd", "sunos"];

/** Makes a task of the first of its files that its owner may execute, whatever language it is written in. */
export const LoadTaskFromExecutableFilePlugin: GraphileConfig.Plugin = {
  name: "LoadTaskFromExecutableFilePlugin",
  after: ["LoadTaskFromJsPlugin"],
  worker: {
    hooks: {
      init(ctx) {
        if (platforms.includes(process.platform)) return;
        ctx.logger.warn(`Executable tasks are not supported on ${process.platform}: such files are ignored.`);
      },
      async loadTaskFromFiles(_ctx, event) {
        if (event.handler || !platforms.includes(process.platform)) return;
        const file = event.fileDetailsList.find(({ stats }) => (stats.mode & constants.S_IXUSR) !== 0);
        if (!file) return;
        const { executableTask } = await import("./executable-task.ts");
        event.handler = executableTask(file, event.taskIdentifier);
      },
    },
  },
};
