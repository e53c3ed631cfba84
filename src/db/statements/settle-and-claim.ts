import type { Statement } from "../statement.ts";
import { whileAlive } from "./claim.ts";
import {
  type ClaimLimitedParams,
  type ClaimLimitedRow,
  claimedLimited,
  columnsOfLimited,
  valuesOfLimited,
} from "./claim-limited.ts";

/** What is settled, and with what others are claimed then. */
export interface SettleAndClaimParams<Settled> {
  readonly settled: Settled;
  readonly claim: ClaimLimitedParams;
}

/** The columns of the claim are null if there was none: the database does not know us as alive. */
export type SettleAndClaimRow<Row> = Row & (ClaimLimitedRow | { readonly took_ms: null });

/**
 * A statement that settles jobs and then claims others within their limits, in one transaction: the places that it frees are taken by the time others
 * can see them. The claim needs what was settled for an argument, so it cannot come first.
 */
function thenClaim<Settled, Row>(
  settle: Statement<Settled, Row>,
  isWatched: boolean,
): Statement<SettleAndClaimParams<Settled>, SettleAndClaimRow<Row>> {
  const taken = Math.max(...[...settle.text.matchAll(/\$(\d+)/g)].map(([, nth]) => Number(nth)));
  const shifted = (text: string): string => text.replaceAll(/\$(\d+)/g, (_, nth) => `$${Number(nth) + taken}`);
  const wanted = "case when settled.lost is null then $3::integer else $3::integer end";
  const claimed = claimedLimited.replace("$3::integer", wanted);
  return {
    name: `${settle.name}_and_claim${isWatched ? "_alive" : ""}`,
    patienceMs: settle.patienceMs!,
    givesWay: true,
    values: (params) => [...settle.values(params.settled), ...valuesOfLimited(params.claim)],
    text: `
    ${isWatched ? `${shifted(whileAlive)},` : "with"} settled as materialized (${settle.text}
    )
    select settled.*, claimed.*
    from settled
    left join lateral (
      select ${shifted(columnsOfLimited)}
      from ${isWatched ? "alive cross join lateral " : ""}${shifted(claimed)}
    ) as claimed on true`,
  };
}

const madeOf = new Map<boolean, WeakMap<object, unknown>>([
  [true, new WeakMap()],
  [false, new WeakMap()],
]);

/** `settle` with a claim behind it, the same object for the same statement. `isWatched` if the pool sends heartbeats. */
export function andClaim<Settled, Row>(
  settle: Statement<Settled, Row>,
  isWatched: boolean,
): Statement<SettleAndClaimParams<Settled>, SettleAndClaimRow<Row>> {
  const made = madeOf.get(isWatched)!;
  const known = made.get(settle) ?? thenClaim(settle, isWatched);
  made.set(settle, known);
  return known as Statement<SettleAndClaimParams<Settled>, SettleAndClaimRow<Row>>;
}
