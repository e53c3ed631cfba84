import { expect, test } from "vitest";
import { Fleet, type FleetNews, type FleetOptions, readFleetNews } from "../../../src/worker/claim/fleet.ts";
import { Schedule } from "../../../src/worker/claim/schedule.ts";
import { dice } from "../../support/dice.ts";

interface Member {
  readonly id: string;
  readonly fleet: Fleet;
  /** Follows of jobs that were added and not answered for. */
  follows: number;
  isFull: boolean;
}

/** A fleet whose members share a channel and a clock, as they share a database. */
function makeFleet(size: number, seed: number) {
  const roll = dice(seed);
  let now = 1_000;
  const members: Member[] = Array.from({ length: size }, (_, nth) => {
    const id = `worker-${nth}-${Math.floor(roll() * 1e9).toString(16)}`;
    const options: FleetOptions = {
      id: () => id,
      slots: () => 10,
      isOpen: () => true,
      onFollow: () => void member.follows++,
      random: roll,
      now: () => now,
    };
    const member: Member = { id, fleet: new Fleet(options), follows: 0, isFull: false };
    member.fleet.describe("kind");
    return member;
  });
  /** A claim of one member, which the others hear of if it is announced. */
  const claim = (member: Member, isTimed: boolean, found = 0): boolean => {
    const announcement = member.fleet.announce({ isTimed, seesAll: true });
    if (!announcement) return false;
    const jobs = member.isFull ? 10 : found;
    member.fleet.announced(announcement, { jobs, wanted: 10 });
    if (jobs < Math.min(announcement.from, 10)) return false;
    const news = readFleetNews(`${announcement.text},"full":${member.isFull},"all":true,"due":null}`) as FleetNews;
    for (const other of members) other.fleet.hear(news);
    return true;
  };
  return {
    members,
    claim,
    roll,
    now: () => now,
    pass: (ms: number) => {
      now += ms;
    },
  };
}

test.each([[8], [12], [40], [200]])("of %i processes that know each other exactly one claims an added job", (size) => {
  const { members, claim, roll } = makeFleet(size, size);
  for (const member of members) claim(member, true);
  const wins = new Map<string, number>();
  for (let n = 0; n < 300; n++) {
    const insert = roll();
    const chosen = members.filter(({ fleet }) => fleet.hearInsert(insert, 1));
    expect(chosen).toHaveLength(1);
    for (const { id } of chosen) wins.set(id, (wins.get(id) ?? 0) + 1);
    // One answer is enough for all.
    claim(chosen[0]!, false);
    for (const member of members) member.fleet.close();
  }
  expect(members.every(({ follows }) => follows === 0)).toBe(true);
  // They take turns: nobody has more than a few times its share.
  expect(Math.max(...wins.values())).toBeLessThan((300 / size) * 3 + 8);
});

test("if the one that was chosen tells nothing, three follow within 15 ms, and an answer of one of them is enough for the others", async () => {
  const { members, claim, roll, pass } = makeFleet(40, 13);
  for (const member of members) claim(member, true);
  const insert = roll();
  const chosen = members.filter(({ fleet }) => fleet.hearInsert(insert, 1));
  const following = (): Member[] => members.filter(({ follows }) => follows > 0);
  pass(5);
  await expect.poll(() => following().length).toBe(1);
  pass(10);
  await expect.poll(() => following().length).toBe(3);
  // They tell only if they have found a job: most often the one that was chosen is just late.
  expect(following().map((member, nth) => claim(member, false, nth === 2 ? 1 : 0))).toEqual([false, false, true]);
  pass(90);
  // The next add goes to one again: the slow one still counts.
  const next = roll();
  expect(members.filter(({ fleet }) => fleet.hearInsert(next, 1))).toHaveLength(1);
  expect([chosen.length, following().length]).toEqual([1, 3]);
  for (const member of members) member.fleet.close();
});

test("of a larger fleet each tells of itself less often, and is remembered for longer", () => {
  for (const [size, scale] of [
    [40, 1],
    [401, 4],
  ] as const) {
    const { members, claim, roll, pass, now } = makeFleet(size, size);
    // Twice: the first did not know how many there are.
    for (const member of [...members, ...members]) claim(member, true);
    for (const { fleet } of members) {
      expect(fleet.turn.presenceAt - now()).toBeGreaterThanOrEqual(22_500 * scale);
      expect(fleet.turn.presenceAt - now()).toBeLessThanOrEqual(37_500 * scale);
    }
    const chosen = (): number => {
      const insert = roll();
      return members.filter(({ fleet }) => fleet.hearInsert(insert, 1)).length;
    };
    pass(74_000 * scale);
    expect(chosen()).toBe(1);
    pass(2_000 * scale);
    // Nobody knows anybody any more.
    expect(chosen()).toBe(size);
    for (const { fleet } of members) fleet.close();
  }
});

test("the polls of an idle fleet go round: who has told nothing for longest is next, and nobody has to tell of itself beside that", () => {
  const { members, claim, pass, now } = makeFleet(10, 21);
  const idle = members.map((member) => ({ member, schedule: new Schedule({ pollInterval: () => 2_000 }), toldAt: 0 }));
  const scans: number[] = [];
  let longestSilence = 0;
  while (now() < 300_000) {
    const next = idle.reduce((first, each) => (each.schedule.nextScanAt < first.schedule.nextScanAt ? each : first));
    pass(Math.max(1, next.schedule.nextScanAt - now()));
    next.schedule.turn(now());
    next.schedule.begin();
    expect(claim(next.member, true)).toBe(true);
    next.schedule.scanned(now(), { dueInMs: null, isFull: false, leftOutAt: Infinity });
    for (const { member, schedule } of idle) if (member !== next.member) schedule.rely(now(), null, member.fleet.turn);
    if (scans.length > 2 * members.length) longestSilence = Math.max(longestSilence, now() - next.toldAt);
    next.toldAt = now();
    scans.push(now());
  }
  const settled = scans.filter((at) => at > 60_000);
  expect((settled.at(-1)! - settled[0]!) / (settled.length - 1)).toBeCloseTo(1_800);
  expect(longestSilence).toBeLessThan(22_500);
});

test("more jobs wake more processes, and many wake all", () => {
  const { members, claim, roll } = makeFleet(40, 7);
  for (const member of members) claim(member, true);
  const woken = (count: number): number => {
    const insert = roll();
    const chosen = members.filter(({ fleet }) => fleet.hearInsert(insert, count));
    for (const member of members) claim(member, true);
    return chosen.length;
  };
  expect([woken(1), woken(10), woken(11), woken(150), woken(1_000)]).toEqual([1, 1, 2, 15, 40]);
});

test("whoever knows too few others claims always, and so does everyone where adds cannot be told apart", () => {
  const { members, claim, roll } = makeFleet(7, 3);
  for (const member of members) claim(member, true);
  const insert = roll();
  expect(members.filter(({ fleet }) => fleet.hearInsert(insert, 1))).toHaveLength(7);
  const large = makeFleet(40, 4);
  expect(large.members.filter(({ fleet }) => fleet.hearInsert(insert, 1))).toHaveLength(40);
  for (const member of large.members) large.claim(member, true);
  expect(large.members.filter(({ fleet }) => fleet.hearInsert(undefined, 1))).toHaveLength(40);
});

test("processes without room are not chosen once they have told so", () => {
  const { members, claim, roll } = makeFleet(40, 11);
  for (const member of members) claim(member, true);
  for (const member of members.slice(0, 30)) {
    member.isFull = true;
    claim(member, false);
  }
  for (let n = 0; n < 100; n++) {
    const insert = roll();
    const chosen = members.filter(({ fleet, isFull }) => fleet.hearInsert(insert, 1) && !isFull);
    expect(chosen.length).toBe(1);
    for (const member of members) claim(member, true);
  }
});

test("nobody waits for what was added after the scan that is told of", async () => {
  const { members, claim, roll, pass } = makeFleet(40, 5);
  for (const member of members) claim(member, true);
  const [first, second] = [roll(), roll()];
  const early = members.filter(({ fleet }) => fleet.hearInsert(first, 1))[0]!;
  // It scans before the second add, and is heard after it.
  const announcement = early.fleet.announce({ isTimed: false, seesAll: true })!;
  const waiting = members.filter(({ fleet }) => !fleet.hearInsert(second, 1));
  const news = readFleetNews(`${announcement.text},"full":false,"all":true,"due":null}`) as FleetNews;
  for (const { fleet } of members) fleet.hear(news);
  pass(101);
  await expect.poll(() => waiting.filter(({ follows }) => follows > 0).length).toBe(39);
});

test("if those who were chosen are gone, the others follow, and do not count on them again", async () => {
  const { members, claim, roll, pass } = makeFleet(40, 9);
  for (const member of members) claim(member, true);
  const insert = roll();
  const gone = members.filter(({ fleet }) => fleet.hearInsert(insert, 1));
  const left = members.filter((member) => !gone.includes(member));
  pass(101);
  await expect.poll(() => left.every(({ follows }) => follows === 1)).toBe(true);
  for (let n = 0; n < 50; n++) {
    const next = roll();
    expect(left.filter(({ fleet }) => fleet.hearInsert(next, 1))).toHaveLength(1);
    for (const member of left) claim(member, true);
  }
});
