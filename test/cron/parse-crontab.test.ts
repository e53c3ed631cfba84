import { expect, test } from "vitest";
import { $$isParsed, type PatternMatcher } from "../../src/cron/cron-item.ts";
import { CrontabError } from "../../src/cron/crontab-error.ts";
import { parseCrontab } from "../../src/cron/parse-crontab.ts";

function matched(line: string): PatternMatcher["parsedCronMatch"] {
  const [item] = parseCrontab(`${line} task`);
  return (item!.match as PatternMatcher).parsedCronMatch;
}

function problemsOf(crontab: string): CrontabError["problems"] {
  try {
    parseCrontab(crontab);
  } catch (error) {
    if (error instanceof CrontabError) return error.problems;
    throw error;
  }
  return [];
}

function count(from: number, to: number, step = 1): number[] {
  const values: number[] = [];
  for (let value = from; value <= to; value += step) values.push(value);
  return values;
}

test("a bare line gives an item with every option key and no payload", () => {
  const [item] = parseCrontab("* * * * * task");
  expect(item).toStrictEqual({
    [$$isParsed]: true,
    match: expect.any(Function),
    task: "task",
    options: {
      backfillPeriod: 0,
      maxAttempts: undefined,
      queueName: undefined,
      priority: undefined,
      jobKey: undefined,
      jobKeyMode: undefined,
    },
    payload: null,
    identifier: "task",
  });
});

test("a full line gives all options and its JSON5 payload", () => {
  const [item] = parseCrontab(
    "0 4 * * 1 a/b:c_d-e ?id=x&fill=4w3d2h1m&max=3&queue=a:b&jobKey=k+1%26&jobKeyMode=preserve_run_at&priority=-7 {a: [1, 'x'],}",
  );
  expect(item).toMatchObject({
    task: "a/b:c_d-e",
    identifier: "x",
    payload: { a: [1, "x"] },
    options: {
      backfillPeriod: 44_761 * 60_000,
      maxAttempts: 3,
      queueName: "a:b",
      jobKey: "k 1&",
      jobKeyMode: "preserve_run_at",
      priority: -7,
    },
  });
});

test("the options beyond Graphile Worker's appear only when they are given", () => {
  const [item] = parseCrontab(
    "0 4 * * 1 a ?tz=Etc/GMT+5&dst=skip,both&missed=last&overlap=skip&flags=a,b&seconds=*/20",
  );
  expect(item!.options).toMatchObject({
    timeZone: "Etc/GMT+5",
    dst: { skipped: "skip", repeated: "both" },
    missed: "last",
    overlap: "skip",
    flags: ["a", "b"],
    seconds: [0, 20, 40],
  });
});

test("a job key without a mode replaces", () => {
  expect(parseCrontab("* * * * * a ?jobKey=k")[0]!.options.jobKeyMode).toBe("replace");
  expect(parseCrontab("* * * * * a ?jobKey=")[0]!.options.jobKeyMode).toBeUndefined();
});

test("comments, blank lines, indentation, carriage returns and a byte order mark are not entries", () => {
  const items = parseCrontab("\ufeff# note\r\n\r\n   \n  1 2 3 4 5 a  \r\n#x\n\t* * * * * b {x:1} \n");
  expect(items.map((item) => item.identifier)).toEqual(["a", "b"]);
});

test.each([
  ["0 0 1 1 0", { minutes: [0], hours: [0], dates: [1], months: [1], dows: [0] }],
  ["00 07 * * 7", { minutes: [0], hours: [7], dows: [0] }],
  ["1,1,2 * * * *", { minutes: [1, 2] }],
  ["30,5-8,*/20 * * * *", { minutes: [0, 5, 6, 7, 8, 20, 30, 40] }],
  ["*/90 */25 */40 */13 */8", { minutes: [0], hours: [0], dates: [1], months: [1], dows: [0] }],
  ["* * */10 */5 */3", { dates: [1, 11, 21, 31], months: [1, 6, 11], dows: [0, 3, 6] }],
  ["* * * * 5-7", { dows: [0, 5, 6] }],
  ["* * * * 0-7", { dows: count(0, 6) }],
  ["* * * * *", { minutes: count(0, 59), hours: count(0, 23), dates: count(1, 31), months: count(1, 12) }],
  ["1-10/3 8-18/5 * * *", { minutes: [1, 4, 7, 10], hours: [8, 13, 18] }],
  ["* * * jan,MAR-may mon", { months: [1, 3, 4, 5], dows: [1] }],
  ["* * * * fri-sun", { dows: [0, 5, 6] }],
  ["* * * * sun-tue", { dows: [0, 1, 2] }],
  ["* * * jan-dec/6 sun,wed-6", { months: [1, 7], dows: [0, 3, 4, 5, 6] }],
  ["@hourly", { minutes: [0], hours: count(0, 23) }],
  ["@daily", { minutes: [0], hours: [0], dates: count(1, 31) }],
  ["@weekly", { minutes: [0], hours: [0], dows: [0] }],
  ["@monthly", { minutes: [0], hours: [0], dates: [1], months: count(1, 12) }],
  ["@yearly", { minutes: [0], hours: [0], dates: [1], months: [1], dows: count(0, 6) }],
])("'%s' matches the listed values", (pattern, expected) => {
  expect(matched(pattern)).toMatchObject(expected);
});

test.each([
  ["60 * * * * a", 1, "Too large value '60' in minutes range in line 1 of crontab: expected values in the range 0-59."],
  ["* 24 * * * a", 3, "Too large value '24' in hours range"],
  ["* * 0 * * a", 5, "Too small value '0' in dates range in line 1 of crontab: expected values in the range 1-31."],
  ["* * * 13 * a", 7, "Too large value '13' in months range"],
  [
    "* * * * 8 a",
    9,
    "Too large value '8' in days of week range in line 1 of crontab: expected values in the range 0-6.",
  ],
  [
    "1,5-3 * * * * a",
    3,
    "Invalid range '5-3' in minutes range in line 1 of crontab: destination is not larger than source",
  ],
  ["3-3 * * * * a", 1, "Invalid range '3-3'"],
  [
    "*/0 * * * * a",
    1,
    "Invalid wildcard expression '*/0' in minutes range in line 1 of crontab: divisor '0' expected to be greater than zero",
  ],
  ["1-5/0 * * * * a", 1, "divisor '0' expected to be greater than zero"],
  [
    "1,,2 * * * * a",
    3,
    "Unsupported syntax '' in minutes range in line 1 of crontab: this doesn't appear to be a number, range or wildcard",
  ],
  ["5/2 * * * * a", 1, "Unsupported syntax '5/2'"],
  ["* * * jan-mon * a", 7, "Could not process line '1' of crontab: '* * * jan-mon * a'"],
  ["* * * * mon-5-6 a", 9, "Unsupported syntax 'mon-5-6' in days of week range"],
  ["mon * * * * a", 1, "Could not process line '1' of crontab: 'mon * * * * a'"],
  ["@never a", 1, "Could not process line '1' of crontab: '@never a'"],
  ["@daily", 7, "Could not process line '1' of crontab: '@daily'"],
  ["a", 1, "Could not process line '1' of crontab: 'a'"],
  ["* * * * a", 9, "Could not process line '1' of crontab: '* * * * a'"],
  ["* * * * *", 10, "Could not process line '1' of crontab: '* * * * *'"],
  ["* * * * * 9a", 11, "Invalid command specification in line 1 of crontab."],
  ["* * * * * a {a", 11, "Invalid command specification in line 1 of crontab."],
  ["* * * * * a [1]", 11, "Invalid command specification in line 1 of crontab."],
  ["* * * * * a ? {a:1}", 11, "Invalid command specification in line 1 of crontab."],
  [
    "* * * * * a ?max=1&foo=1",
    20,
    "Options on line 1 of crontab contains unsupported key 'foo'; supported keys are: 'id', 'fill', 'max', 'queue', 'jobKey', 'jobKeyMode', 'priority'.",
  ],
  ["* * * * * a ?toString=1", 14, "unsupported key 'toString'"],
  [
    "* * * * * a ?id=9",
    14,
    "Options on line 1 of crontab contains invalid value for 'id', value '9' is not compatible with this option.",
  ],
  [
    "* * * * * a ?id=a&id=b",
    19,
    "Options on line 1 of crontab contains invalid value for 'id', did you specify it more than once?",
  ],
  ["* * * * * a ?fill=1x", 14, "invalid value for 'fill', value '1x'"],
  ["* * * * * a ?max=-1", 14, "invalid value for 'max', value '-1'"],
  ["* * * * * a ?queue=a%20b", 14, "invalid value for 'queue', value 'a b'"],
  ["* * * * * a ?jobKeyMode=unsafe_dedupe", 14, "invalid value for 'jobKeyMode', value 'unsafe_dedupe'"],
  ["* * * * * a ?priority=x", 14, "invalid value for 'priority', value 'x'"],
  ["* * * * * a ?tz=Europe/Atlantis", 14, "invalid value for 'tz', value 'Europe/Atlantis'"],
  ["* * * * * a ?dst=run,skip", 14, "invalid value for 'dst', value 'run,skip'"],
  ["* * * * * a ?dst=", 14, "invalid value for 'dst', value ''"],
  ["* * * * * a ?missed=some", 14, "invalid value for 'missed', value 'some'"],
  ["* * * * * a ?overlap=no", 14, "invalid value for 'overlap', value 'no'"],
  ["* * * * * a ?flags=a,,b", 14, "invalid value for 'flags', value 'a,,b'"],
  ["* * * * * a ?seconds=60", 14, "invalid value for 'seconds', value '60'"],
  ["* * * * * a ?fill=1h&missed=none", 22, "ask to 'fill' and, with 'missed=none', never to catch up"],
  ["* * * * * a {a:}", 16, "Failed to parse JSON5 payload on line 1 of crontab: JSON5: invalid character '}' at 1:4"],
])("'%s' is refused at column %i", (line, column, phrase) => {
  const problems = problemsOf(line);
  expect(problems).toHaveLength(1);
  expect(problems[0]).toMatchObject({ file: "crontab", line: 1, column });
  expect(problems[0]!.message).toContain(phrase);
  expect(problems[0]!.expected).not.toBe("");
});

test("every fault of a file is reported at once, each with its place", () => {
  const crontab = ["# ours", "61 25 * * * a ?id=1&max=x", "  nonsense", "* * * * * b", "* * * * * b {x:}"].join("\n");
  const fail = (): unknown => parseCrontab(crontab, { file: "jobs/crontab" });
  expect(fail).toThrow(CrontabError);
  expect(problemsOf(crontab).map(({ line, column, text }) => [line, column, text])).toEqual([
    [2, 1, "61"],
    [2, 4, "25"],
    [2, 16, "id=1"],
    [2, 21, "max=x"],
    [3, 3, "nonsense"],
    [5, 16, "{x:}"],
    [5, 1, "'b'"],
  ]);
  expect(fail).toThrow(/^7 problems found:\njobs\/crontab:2:1: Too large value '61'/);
  expect(() => parseCrontab("x", { file: "jobs/crontab" })).toThrow(
    /^jobs\/crontab:1:1: Could not process line '1' of crontab: 'x'\nExpected five time fields/,
  );
});

test("two entries of one name are refused unless an id tells them apart", () => {
  expect(() => parseCrontab("* * * * * a\n* * * * * a")).toThrow(
    "Invalid crontab; duplicate identifiers found: 'a' - please use '?id=...' to specify unique identifiers for your cron items",
  );
  expect(parseCrontab("* * * * * a\n* * * * * a ?id=b")).toHaveLength(2);
});

test("a crontab error has a stable code", () => {
  try {
    parseCrontab("x");
    expect.unreachable();
  } catch (error) {
    expect(error).toMatchObject({ code: "BAD_CRONTAB", name: "CrontabError" });
  }
});

test.each([
  ["max=0", "1 to 32767"],
  ["max=32768", "1 to 32767"],
  ["priority=99999", "-32768 to 32767"],
  ["priority=-32769", "-32768 to 32767"],
  [`queue=${"q".repeat(129)}`, "1 to 128"],
  [`jobKey=${"k".repeat(513)}`, "at most 512"],
])("?%.20s is an error of the file", (option, expected) => {
  const [problem] = problemsOf(`* * * * * a ?${option}`);
  expect(problem).toMatchObject({ line: 1, column: 14, expected: expect.stringContaining(expected) });
});
