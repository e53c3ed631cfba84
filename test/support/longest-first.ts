import { BaseSequencer, type TestSpecification } from "vitest/node";

/** The files that take longest, longest first. It need not be exact: a file that is missing here just starts later. */
const longest = [
  "recovery/processes",
  "docs/readme",
  "examples/next",
  "drop-in/drop-in",
  "cli/mistakes",
  "worker/claim/claim.property",
  "chaos/exactly-once",
  "chaos/fleet",
  "chaos/fleet-under-blows",
  "forward/brokers",
  "chaos/network",
  "recovery/chaos",
  "recovery/outage",
  "recovery/sweep",
  "examples/frameworks",
  "upgrade/rehearsal",
  "chaos/failover",
  "chaos/bad-network",
  "chaos/absent-server",
  "chaos/kills",
  "chaos/restarts",
  "chaos/half-open",
  "db/odd-roles",
  "control/cancel-hunt",
  "control/pause-processes",
  "docs/deployment",
  "docs/first-command",
  "docs/package-managers",
  "embedded/test/start-embedded",
  "dashboard/browser-pages",
  "dashboard/browser-behaviour",
  "dashboard/browser-actions",
  "orms/complete-in",
  "orms/caller-transaction",
  "cli/admin",
  "cli/run",
  "cli/million",
  "control/processes",
  "chaos/adversary",
  "db/lock-order",
  "history/reading",
  "worker/claim/large-payloads",
  "worker/run/outcomes",
];

/** Starts the longest files first, so that no worker is left with one of them at the end while the others have nothing to do. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.toSorted((one, other) => rankOf(one) - rankOf(other));
  }
}

function rankOf({ moduleId }: TestSpecification): number {
  const rank = longest.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`));
  return rank < 0 ? longest.length : rank;
}
