import "graphile-config";
import type {} from "../hooks/plugin.ts";
import { loadTaskFile } from "./module-tasks.ts";

/** Loads a task from the first of its files that has one of the `fileExtensions`, in their order. */
export const LoadTaskFromJsPlugin: GraphileConfig.Plugin = {
  name: "LoadTaskFromJsPlugin",
  worker: {
    hooks: {
      async loadTaskFromFiles(ctx, event) {
        if (event.handler) return;
        for (const extension of ctx.resolvedPreset.worker?.fileExtensions ?? []) {
          const file = event.fileDetailsList.find((details) => details.extension === extension);
          if (!file) continue;
          event.handler = await loadTaskFile(file.fullPath, event.taskIdentifier);
          return;
        }
      },
    },
  },
};
