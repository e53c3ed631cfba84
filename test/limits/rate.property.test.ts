import { expect, test, vi } from "vitest";
import { freshDatabase } from "../support/database.ts";
import { dice } from "../support/dice.ts";
import { seeds } from "../support/times.ts";

vi.setConfig({ testTimeout: 120_000 });

/**
 * The limiter on a simulated clock: `_hathi_admit_jobs` takes the moment as an argument. Jobs come and claims are made at random; each admitted job
 * starts up to its slack late, and some claims, made by slow pools, ask for more.
 */
test.each(seeds(6))(
  "in every window the starts stay within limit plus burst, and at least 95 of 100 are used while work waits (seed %i)",
  async (seed) => {
    const roll = dice(seed * 104_729);
    const upTo = (most: number): number => Math.floor(roll() * most);
    const db = await freshDatabase();
    const costs = (["one", "payload", "all alike"] as const)[seed % 3]!;
    const limit = 20 + upTo(60);
    const burst = upTo(2) === 0 ? 0 : upTo(20);
    const dearest = costs === "one" ? 1 : 2 + upTo(upTo(2) === 0 ? 4 : limit / 2);
    const periodMs = [250, 1_000, 10_000][upTo(3)]!;
    await db.query(
      `insert into graphile_worker._hathi_limits (scope, name, kind, places, period_ms, burst, cost, cost_path)
      values ('task', 't', 'rate', $1, $2, $3, $4, $5)`,
      [limit, periodMs, burst, dearest, costs === "payload" ? ["c"] : null],
    );
    const isDear = `n % ${1 + upTo(6)} = 0`;
    await db.query(
      `select graphile_worker.add_job('t', json_build_object('c', case when $1 = 'payload' then case when ${isDear} then $2 else 1 + n % $2 end else $2 end))
      from generate_series(1, 50) as n`,
      [costs, dearest],
    );
    const line = await db.query<{ tid: string; cost: number }>(
      "select ctid::text as tid, (payload ->> 'c')::int as cost from graphile_worker._private_jobs order by id",
    );
    const origin = Date.UTC(2030, 0, 1);
    const starts: { at: number; cost: number }[] = [];
    let now = 0;
    const lookAhead = 50;
    // Sometimes nobody asks for a while; at the end there is always work and always someone who asks.
    const calm = 3 * periodMs + upTo(2 * periodMs);
    const end = calm + 9.5 * periodMs;
    while (now < end) {
      const wanted = 1 + upTo(10);
      const late = now < calm && upTo(3) === 0 ? upTo(Math.min(periodMs, 5_000)) : 0;
      const [answer] = await db.query<{
        admitted: number[];
        counts: number[];
        starts: string[];
        steps: number[];
        slacks: number[];
        release: string | null;
      }>(
        `select admitted, counts, array(select (extract(epoch from at) * 1000)::text from unnest(start_ats) as at) as starts, steps, slacks,
          (extract(epoch from release_at) * 1000)::text as release
        from graphile_worker._hathi_admit_jobs(array[1], $1::tid[], null, $2, $3::timestamptz, $3::timestamptz + interval '50 milliseconds', $4)`,
        [line.map(({ tid }) => tid), wanted, new Date(origin + now).toISOString(), late],
      );
      const admitted = answer!.admitted.map((place) => line[place - 1]!.cost);
      line.push(...line.splice(0, admitted.length));
      for (const [run, count] of answer!.counts.entries()) {
        for (let nth = 0; nth < count; nth++) {
          const from = Number(answer!.starts[run]) - origin + nth * answer!.steps[run]!;
          const to = from + answer!.slacks[run]! + late;
          // The worst that slow pools can do is to start their jobs all at once.
          const crowded = Math.ceil(from / periodMs) * periodMs;
          const isCrowding = late > 0 || upTo(2) === 0;
          const at = isCrowding && crowded <= to ? crowded : from + roll() * (to - from);
          starts.push({ at, cost: admitted.shift()! });
        }
      }
      const isCalm = now < calm;
      const next = answer!.release === null ? now + 1 : Number(answer!.release) - origin - lookAhead + upTo(30);
      now = isCalm && upTo(6) === 0 ? now + upTo(periodMs) : Math.max(now + 1, next);
    }
    starts.sort((one, other) => one.at - other.at);
    for (const { at } of starts) {
      const used = starts
        .filter((o) => o.at >= at && o.at < at + periodMs - 0.001)
        .reduce((sum, { cost }) => sum + cost, 0);
      expect(used, `in the window from ${at}: limit ${limit}, burst ${burst}, period ${periodMs}`).toBeLessThanOrEqual(
        limit + burst,
      );
    }
    const busy = starts.filter(({ at }) => at >= calm + periodMs && at < calm + 9 * periodMs);
    const used = busy.reduce((sum, { cost }) => sum + cost, 0) / (8 * limit);
    // What a job costs beyond the burst cannot be used in the window that begins with it.
    const beyond = Math.max(0, dearest - 1 - burst) / limit;
    const least = beyond <= 0.25 ? 0.95 * (1 - beyond) - dearest / (8 * limit) : 0.45;
    expect(used, `limit ${limit}, burst ${burst}, period ${periodMs}, cost ${dearest}`).toBeGreaterThanOrEqual(
      beyond === 0 && costs === "one" ? 0.95 : least,
    );
  },
);
