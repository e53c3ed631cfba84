import { createHash } from "node:crypto";
import type { Database } from "../../db/database.ts";
import {
  type AnnouncingRow,
  type ClaimResultRow,
  claimJobs,
  claimJobsAlive,
  claimJobsAliveAnnouncing,
  claimJobsAnnouncing,
} from "../../db/statements/claim.ts";
import type { Claimant, Room } from "./claim-request.ts";
import type { Announcement, Fleet } from "./fleet.ts";
import type { ScanRange } from "./scan-range.ts";

export interface PlainClaimOptions {
  readonly database: Database;
  readonly fleet: Fleet;
  readonly schema: string;
  /** The server may forget a claim when it crashes. */
  readonly relaxed: boolean;
}

/** How a plain claim scans, and what it tells other processes. */
export interface Scan extends ScanRange {
  readonly announcement: Announcement | null;
}

/** The statement that claims jobs of tasks without limits, and lets the fleet know in the same breath. */
export class PlainClaim {
  readonly #options: PlainClaimOptions;
  #described: { readonly nameById: ReadonlyMap<number, string>; readonly flags: string } | undefined;

  constructor(options: PlainClaimOptions) {
    this.#options = options;
  }

  /** Gives no row if the database does not know us as alive. */
  async claim(
    who: Claimant,
    room: Room,
    { marks, withQueues, ownQueues, announcement }: Scan,
    isWatched: boolean,
  ): Promise<ClaimResultRow | AnnouncingRow | undefined> {
    const { database, relaxed } = this.#options;
    const params = { ...who, wanted: room.jobs, perQueue: room.perQueue, marks, withQueues, ownQueues, relaxed };
    if (!announcement) return (await database.run(isWatched ? claimJobsAlive : claimJobs, params))[0];
    const { text, from } = announcement;
    const statement = isWatched ? claimJobsAliveAnnouncing : claimJobsAnnouncing;
    return (await database.run(statement, { ...params, news: text, tellFrom: Math.min(from, room.jobs) }))[0];
  }

  /** Tells the fleet what our claims are about: processes with the same schema, tasks and flags find the same jobs. */
  describe(nameById: ReadonlyMap<number, string>, { forbidden, accepted }: Claimant): void {
    const { fleet, schema } = this.#options;
    const flags = JSON.stringify([forbidden, accepted]);
    if (nameById === this.#described?.nameById && flags === this.#described.flags) return;
    this.#described = { nameById, flags };
    const kind = JSON.stringify([schema, [...nameById.values()].sort(), [forbidden, accepted]]);
    fleet.describe(createHash("sha1").update(kind).digest("base64url"));
  }
}
