import { spawnSync } from "node:child_process";

/** True if the program can be started here. `npm test` says at its end which ones could not be had. */
export function hasProgram(name: string): boolean {
  return spawnSync(name, ["--version"], { stdio: "ignore" }).status === 0;
}
