import { readdirSync, readFileSync } from "node:fs";

// The kernel's USER_HZ, which Linux fixes at 100 for everything user space sees.
const msPerTick = 10;

/** CPU time of a PostgreSQL server so far: its processes, and those it has already buried. `undefined` where /proc is missing. */
export function serverCpuMs(postmasterPid) {
  let postmaster = postmasterPid && readStat(postmasterPid);
  while (postmaster) {
    const ticks = postmaster.own + postmaster.buried + childTicks(postmasterPid);
    const again = readStat(postmasterPid);
    // A child that was buried while we looked would be counted twice or not at all.
    if (again?.buried === postmaster.buried) return ticks * msPerTick;
    postmaster = again;
  }
  return undefined;
}

/** CPU time of one process so far. `undefined` where /proc is missing. */
export function processCpuMs(pid) {
  const stat = readStat(pid);
  return stat && stat.own * msPerTick;
}

function childTicks(parent) {
  let ticks = 0;
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const stat = readStat(name);
    if (stat?.parent === parent) ticks += stat.own;
  }
  return ticks;
}

function readStat(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The second field is the program's name in brackets and may hold anything.
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    const [user, system, buriedUser, buriedSystem] = fields.slice(11, 15).map(Number);
    return { parent: Number(fields[1]), own: user + system, buried: buriedUser + buriedSystem };
  } catch {
    return undefined;
  }
}
