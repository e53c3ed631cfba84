import { WorkerPreset } from "hathi";

const preset: GraphileConfig.Preset = {
  extends: [WorkerPreset],
  worker: {
    concurrentJobs: 5,
    pollInterval: 1_000,
  },
};

export default preset;
