import { withProcesses } from "../worker-process.mjs";
import { readCommits, readServer } from "./counters.mjs";
import { withPlace } from "./drain-filled.mjs";

/** How fast one process puts jobs into an empty place, and what that costs. */
export function measureEnqueue(context, request) {
  const { server, system } = context;
  return withPlace(context, [], (place) =>
    withProcesses([system.worker], async ([producer]) => {
      await server.admin.query("checkpoint");
      const before = await readServer(server);
      const commitsBefore = system.store ? 0 : await readCommits(server, place);
      const usageBefore = await producer.call("usage");
      const { added, ms } = await producer.call("produce", { place: place.address, ...request });
      const usage = await producer.call("usage");
      const after = await readServer(server);
      return {
        rate: added / (ms / 1000),
        nodeCpuUs: ((usage.cpuMs - usageBefore.cpuMs) * 1000) / added,
        ...(!system.store && {
          pgCpuUs: after.pgCpuMs === undefined ? undefined : ((after.pgCpuMs - before.pgCpuMs) * 1000) / added,
          walBytes: (after.walBytes - before.walBytes) / added,
          commits: ((await readCommits(server, place)) - commitsBefore) / added,
        }),
        rssMb: usage.peakMb,
      };
    }),
  );
}
