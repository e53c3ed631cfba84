import type { WorkerStatus } from "../../../index.ts";
import type { StartMark } from "../../contract.ts";

/** Workers of one version that start within this time after one another start together. */
const togetherMs = 5 * 60_000;
const mostMarks = 20;

interface Group {
  readonly at: number;
  lastAt: number;
  readonly version: string | null;
  workers: number;
}

/** When the workers that run now were started, since a moment: deploys and restarts, oldest first. */
export function startMarks(workers: readonly WorkerStatus[], since: number): StartMark[] {
  const starts = workers
    .flatMap(({ startedAt, metadata }) =>
      startedAt ? [{ at: startedAt.getTime(), version: versionOf(metadata) }] : [],
    )
    .sort((a, b) => a.at - b.at);
  const groups: Group[] = [];
  const latest = new Map<string | null, Group>();
  for (const { at, version } of starts) {
    const same = latest.get(version);
    if (same && at - same.lastAt <= togetherMs) {
      same.lastAt = at;
      same.workers++;
    } else {
      const group = { at, lastAt: at, version, workers: 1 };
      groups.push(group);
      latest.set(version, group);
    }
  }
  return groups
    .filter(({ at }) => at >= since)
    .slice(-mostMarks)
    .map(({ at, version, workers: count }) => ({ at: at / 1_000, version, workers: count }));
}

function versionOf(metadata: unknown): string | null {
  const { appVersion } = (typeof metadata === "object" && metadata !== null ? metadata : {}) as {
    appVersion?: unknown;
  };
  return typeof appVersion === "string" ? appVersion.slice(0, 100) : null;
}
