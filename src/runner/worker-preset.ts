import { makeWorkerPreset } from "../config/preset.ts";
import { LoadTaskFromExecutableFilePlugin } from "../tasks/load-task-from-executable-file.ts";
import { LoadTaskFromJsPlugin } from "../tasks/load-task-from-js.ts";

/** Plugins that are part of every installation. */
export const builtInPlugins: readonly GraphileConfig.Plugin[] = [
  LoadTaskFromJsPlugin,
  LoadTaskFromExecutableFilePlugin,
];

/** The preset that every other one extends: the defaults and the built-in plugins. */
export const WorkerPreset: GraphileConfig.Preset = makeWorkerPreset(builtInPlugins);
