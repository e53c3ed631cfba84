import { WorkerPreset } from "graphile-worker";
import { WatchPlugin } from "./plugin.js";

const preset: GraphileConfig.Preset = {
  extends: [WorkerPreset],
  plugins: [WatchPlugin],
  worker: {
    maxPoolSize: 5,
    pollInterval: 2_000,
    preparedStatements: true,
    schema: "graphile_worker",
    concurrentJobs: 1,
    fileExtensions: [".js", ".cjs", ".mjs", ".ts"],
  },
};

export default preset;
