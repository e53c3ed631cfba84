import { expect, test } from "vitest";
import { cron } from "../../src/cron/cron.ts";
import { parseCron } from "../../src/cron/parse-cron.ts";
import { cronBench, markOf } from "./scheduler-kit.ts";

test("a run becomes a job at its minute, with everything the entry says", async () => {
  const bench = await cronBench("2026-01-01T00:00:30Z");
  bench.start(["1 0 * * * task ?id=x&max=3&queue=q&priority=5&jobKey=k&flags=a,b {hello: 'you'}"]);
  await bench.clock.advanceTo("2026-01-01T00:01:00.500Z");
  const [job] = await bench.db.jobs();
  expect(job).toMatchObject({
    task_identifier: "task",
    payload: { hello: "you", _cron: { ts: "2026-01-01T00:01:00.000Z", backfilled: false } },
    queue_name: "q",
    max_attempts: 3,
    priority: 5,
    key: "k",
    flags: { a: true, b: true },
    run_at: new Date("2026-01-01T00:01:00Z"),
  });
  expect(await bench.lastExecution("x")).toBe("2026-01-01T00:01:00.000Z");
});

test("a bare entry's job has the database's defaults and a payload of nothing but '_cron'", async () => {
  const bench = await cronBench("2026-01-01T00:00:30Z");
  bench.start(["* * * * * task"]);
  await bench.clock.advanceTo("2026-01-01T00:01:30Z");
  const [job] = await bench.db.jobs();
  expect(job).toMatchObject({ max_attempts: 25, priority: 0, key: null, flags: null, queue_name: null });
  expect(job!.payload).toEqual({ _cron: { ts: "2026-01-01T00:01:00.000Z", backfilled: false } });
});

test("entries are registered when cron starts, and those already known keep their history", async () => {
  const bench = await cronBench("2026-01-01T00:00:30Z");
  await bench.know("old", "2025-01-01T00:00:00Z", "2025-06-01T00:00:00Z");
  bench.start(["0 0 1 6 * task ?id=old\n0 0 1 6 * task ?id=new"]);
  await bench.clock.asleep(1);
  const rows = await bench.db.query("select * from graphile_worker._private_known_crontabs order by identifier");
  expect(rows).toEqual([
    { identifier: "new", known_since: new Date("2026-01-01T00:00:30Z"), last_execution: null },
    { identifier: "old", known_since: new Date("2025-01-01"), last_execution: new Date("2025-06-01") },
  ]);
});

test("the events tell of starting and of each minute with runs", async () => {
  const bench = await cronBench("2026-01-01T00:00:30Z");
  const { cron: running, heard } = bench.start(["*/2 * * * * task"]);
  await bench.clock.advanceTo("2026-01-01T00:03:00Z");
  const start = new Date("2026-01-01T00:00:30Z");
  const timestamp = Date.parse("2026-01-01T00:02:00Z");
  const job = {
    task: "task",
    payload: { _cron: { ts: "2026-01-01T00:02:00.000Z", backfilled: false } },
    runAt: "2026-01-01T00:02:00.000Z",
  };
  const jobsAndIdentifiers = [{ identifier: "task", job }];
  expect(heard).toEqual([
    ["cron:starting", { cron: running, start }],
    ["cron:started", { cron: running, start }],
    ["cron:schedule", { cron: running, timestamp, jobsAndIdentifiers }],
    ["cron:scheduled", { cron: running, timestamp, jobsAndIdentifiers }],
  ]);
});

test("a timer that fires early is set again, and the run happens once and on time", async () => {
  const bench = await cronBench("2026-01-01T00:00:30Z");
  const { heard } = bench.start(["* * * * * task"]);
  await bench.clock.wakeEarly();
  expect(heard.at(-1)).toMatchObject([
    "cron:prematureTimer",
    { currentTimestamp: Date.parse("2026-01-01T00:00:30Z"), expectedTimestamp: Date.parse("2026-01-01T00:01:00Z") },
  ]);
  expect(await bench.runs()).toEqual([]);
  await bench.clock.advanceTo("2026-01-01T00:01:30Z");
  expect(await bench.runs()).toEqual(["2026-01-01T00:01:00"]);
});

test("after a sleep of the machine, missed minutes are caught up on in order, whatever 'fill' says", async () => {
  const bench = await cronBench("2026-01-01T00:00:30Z");
  const { heard } = bench.start(["* * * * * task"]);
  await bench.clock.jumpTo("2026-01-01T00:03:20Z");
  expect(heard.filter(([name]) => name === "cron:overdueTimer").map(([, payload]) => payload)).toMatchObject([
    { currentTimestamp: Date.parse("2026-01-01T00:03:20Z"), expectedTimestamp: Date.parse("2026-01-01T00:01:00Z") },
    { expectedTimestamp: Date.parse("2026-01-01T00:02:00Z") },
  ]);
  expect(await bench.runs()).toEqual(["2026-01-01T00:01:00", "2026-01-01T00:02:00", "2026-01-01T00:03:00"]);
});

test.each([
  ["all", ["2026-01-01T01:00:00", "2026-01-01T02:00:00", "2026-01-01T03:00:00"]],
  ["last", ["2026-01-01T03:00:00"]],
  ["none", []],
] as const)("after a sleep of the machine, 'missed=%s' catches up on %o", async (missed, expected) => {
  const bench = await cronBench("2026-01-01T00:00:30Z");
  bench.start([`0 * * * * task ?missed=${missed}`]);
  await bench.clock.jumpTo("2026-01-01T03:30:00Z");
  expect(await bench.runs()).toEqual(expected);
  await bench.clock.advanceTo("2026-01-01T04:00:30Z");
  expect(await bench.runs()).toEqual([...expected, "2026-01-01T04:00:00"]);
});

test("an entry with a zone runs by its clock, and its job says so", async () => {
  const bench = await cronBench("2026-03-29T00:59:00Z");
  bench.start(["30 2 * * * task ?tz=Europe/Berlin"]);
  await bench.clock.advanceTo("2026-03-29T01:00:30Z");
  const [job] = await bench.db.jobs();
  expect(markOf(job!)).toEqual({
    ts: "2026-03-29T01:00:00.000Z",
    backfilled: false,
    timeZone: "Europe/Berlin",
    localTime: "2026-03-29T03:00:00+02:00",
  });
});

test("the default zone counts for entries that name none", async () => {
  const bench = await cronBench("2026-07-01T02:29:00Z");
  bench.start(["0 8 * * * task"], { timeZone: "Asia/Kolkata" });
  await bench.clock.advanceTo("2026-07-01T02:30:30Z");
  const [job] = await bench.db.jobs();
  expect(markOf(job!)).toMatchObject({ timeZone: "Asia/Kolkata", localTime: "2026-07-01T08:00:00+05:30" });
});

test("an entry with seconds runs within the minute, beside entries without", async () => {
  const bench = await cronBench("2026-01-01T00:00:15Z");
  bench.start([cron.everyMinute("task").seconds("*/20"), cron.everyMinute("other")]);
  await bench.clock.advanceTo("2026-01-01T00:01:45Z");
  expect(await bench.runs("task")).toEqual([
    "2026-01-01T00:00:20",
    "2026-01-01T00:00:40",
    "2026-01-01T00:01:00",
    "2026-01-01T00:01:20",
    "2026-01-01T00:01:40",
  ]);
  expect(await bench.runs("other")).toEqual(["2026-01-01T00:01:00"]);
});

test("items may change while they are scheduled", async () => {
  const bench = await cronBench("2026-01-01T00:00:30Z");
  const items = parseCron(["* * * * * task"]);
  bench.start([], { items: () => items });
  await bench.clock.advanceTo("2026-01-01T00:01:30Z");
  items.splice(0, 1, ...parseCron(["* * * * * other"]));
  await bench.clock.advanceTo("2026-01-01T00:02:30Z");
  expect(await bench.runs("task")).toEqual(["2026-01-01T00:01:00"]);
  expect(await bench.runs("other")).toEqual(["2026-01-01T00:02:00"]);
});

test("items can be replaced as a whole, and new ones are registered at once", async () => {
  const bench = await cronBench("2026-01-01T00:00:30Z");
  const { cron: running } = bench.start(["* * * * * task"]);
  await bench.clock.asleep(1);
  await running.replaceItems(parseCron(["* * * * * other"]));
  const known = await bench.db.query(
    "select 1 from graphile_worker._private_known_crontabs where identifier = 'other'",
  );
  expect(known).toHaveLength(1);
  await bench.clock.advanceTo("2026-01-01T00:01:30Z");
  expect(await bench.runs("task")).toEqual([]);
  expect(await bench.runs("other")).toHaveLength(1);
});

test("of two items with one identifier, the first is scheduled", async () => {
  const bench = await cronBench("2026-01-01T00:00:30Z");
  bench.start([
    { task: "task", match: "* * * * *", identifier: "same" },
    { task: "other", match: "* * * * *", identifier: "same" },
  ]);
  await bench.clock.advanceTo("2026-01-01T00:01:30Z");
  expect((await bench.db.jobs()).map((job) => job.task_identifier)).toEqual(["task"]);
});

test("jobs of one minute are added in the order of the items", async () => {
  const bench = await cronBench("2026-01-01T00:00:30Z");
  bench.start(["* * * * * c\n* * * * * a\n* * * * * b"]);
  await bench.clock.advanceTo("2026-01-01T00:01:30Z");
  expect((await bench.db.jobs()).map((job) => job.task_identifier)).toEqual(["c", "a", "b"]);
});

test("an entry that the database refuses loses its run, is reported, and does not stop the others", async () => {
  const bench = await cronBench("2026-01-01T00:00:30Z");
  const tooLong = "b".repeat(129);
  const { troubles } = bench.start([`* * * * * ${tooLong} ?id=bad\n* * * * * task`]);
  await bench.clock.advanceTo("2026-01-01T00:02:30Z");
  expect(await bench.runs()).toEqual(["2026-01-01T00:01:00", "2026-01-01T00:02:00"]);
  expect(await bench.runs(tooLong)).toEqual([]);
  expect(troubles.map(({ identifiers }) => identifiers)).toEqual([["bad"], ["bad"]]);
});

test("a function before scheduling may change a job, leave it out or fail", async () => {
  const bench = await cronBench("2026-01-01T00:00:30Z");
  const { troubles } = bench.start(["* * * * * changed\n* * * * * left_out\n* * * * * failing"], {
    beforeSchedule: async ({ identifier, job }) => {
      if (identifier === "left_out") return null;
      if (identifier === "failing") throw new Error("no");
      return { ...job, payload: { ...job.payload, extra: 1 } };
    },
  });
  await bench.clock.advanceTo("2026-01-01T00:01:30Z");
  const jobs = await bench.db.jobs();
  expect(jobs.map((job) => job.payload)).toMatchObject([{ extra: 1, _cron: { backfilled: false } }]);
  expect(await bench.lastExecution("left_out")).toBe("2026-01-01T00:01:00.000Z");
  expect(troubles).toMatchObject([{ error: new Error("no"), identifiers: ["failing"] }]);
});

test("release stops at once, may be called twice, and nothing is scheduled afterwards", async () => {
  const bench = await cronBench("2026-01-01T00:00:30Z");
  const { cron: running } = bench.start(["* * * * * task"]);
  await bench.clock.asleep(1);
  expect(running._active).toBe(true);
  await Promise.all([running.release(), running.release()]);
  await running.promise;
  expect(running._active).toBe(false);
  await bench.clock.advanceTo("2026-01-01T00:05:00Z", 0);
  expect(await bench.runs()).toEqual([]);
});

test("a run that another process, of ours or an original worker, has scheduled is left alone", async () => {
  const bench = await cronBench("2026-01-01T00:00:30Z");
  bench.start(["* * * * * task\n* * * * * other"]);
  await bench.clock.asleep(1);
  await bench.know("task", "2025-01-01T00:00:00Z", "2026-01-01T00:01:00Z");
  await bench.clock.advanceTo("2026-01-01T00:01:30Z");
  expect((await bench.db.jobs()).map((job) => job.task_identifier)).toEqual(["other"]);
});
