import { randomUUID } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import type { CronItem, ParsedCronItem, ParsedCronMatch } from "../../src/index.ts";
import { loadLibrary } from "./library.ts";

const count = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, at) => from + at);

const every = {
  minutes: count(0, 59),
  hours: count(0, 23),
  dates: count(1, 31),
  months: count(1, 12),
  dows: count(0, 6),
};

const noOptions = {
  backfillPeriod: 0,
  maxAttempts: undefined,
  queueName: undefined,
  priority: undefined,
  jobKey: undefined,
  jobKeyMode: undefined,
};

const matchOf = ({ match }: ParsedCronItem): ParsedCronMatch =>
  (match as typeof match & { parsedCronMatch: ParsedCronMatch }).parsedCronMatch;

/** The item without its mark, which is a symbol of each library's own. */
function withoutMark(item: ParsedCronItem): object {
  expect(Object.getOwnPropertySymbols(item).map(String)).toEqual(["Symbol(isParsed)"]);
  return Object.fromEntries(Object.entries(item));
}

function messageOf(fail: () => unknown): string {
  try {
    fail();
  } catch (error) {
    return (error as Error).message;
  }
  return expect.unreachable();
}

async function crontabFile(text: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "hathi-crontab-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const path = join(folder, "crontab");
  await writeFile(path, text);
  return path;
}

describe.each([
  { name: "ours", isOurs: true },
  { name: "Graphile Worker", isOurs: false },
])("$name", async ({ isOurs }) => {
  const { parseCrontab, parseCronItem, parseCronItems, getCronItems, Logger } = await loadLibrary(isOurs);
  const logger = new Logger(() => () => undefined);

  test("a bare line has every option key, and no payload", () => {
    const [item] = parseCrontab("* * * * * task");
    expect(withoutMark(item!)).toStrictEqual({
      match: expect.any(Function),
      task: "task",
      options: noOptions,
      payload: null,
      identifier: "task",
    });
  });

  test("a full line has all options and its JSON5 payload", () => {
    const [item] = parseCrontab(
      "0 4 * * 1 a/b:c_d-e ?id=x&fill=4w3d2h1m5s&max=03&queue=a:b&jobKey=k+1%26&jobKeyMode=preserve_run_at&priority=-7 {a: [1, 'x'],}",
    );
    expect(withoutMark(item!)).toStrictEqual({
      match: expect.any(Function),
      task: "a/b:c_d-e",
      options: {
        backfillPeriod: 44_761 * 60_000 + 5_000,
        maxAttempts: 3,
        queueName: "a:b",
        priority: -7,
        jobKey: "k 1&",
        jobKeyMode: "preserve_run_at",
      },
      payload: { a: [1, "x"] },
      identifier: "x",
    });
  });

  test.each([
    ["?jobKey=k", { jobKey: "k", jobKeyMode: "replace" }],
    ["?jobKey=", { jobKey: "" }],
    ["?jobKey=%zz", { jobKey: "%zz", jobKeyMode: "replace" }],
    ["?jobKeyMode=preserve_run_at", { jobKeyMode: "preserve_run_at" }],
    ["?&max=1&", { maxAttempts: 1 }],
    ["?fill=1s2s3w", { backfillPeriod: 3_000 + 21 * 24 * 3_600_000 }],
    ["?fill=0s", {}],
  ])("the options '%s' mean %o", (query, options) => {
    expect(parseCrontab(`* * * * * a ${query}`)[0]!.options).toStrictEqual({ ...noOptions, ...options });
  });

  test.each<[string, Partial<ParsedCronMatch>]>([
    ["* * * * *", {}],
    ["0-59 0-23 1-31 1-12 0-6", {}],
    ["0 0 1 1 0", { minutes: [0], hours: [0], dates: [1], months: [1], dows: [0] }],
    ["00 007 * * 7", { minutes: [0], hours: [7], dows: [0] }],
    ["30,5-8,*/20,5 * * * *", { minutes: [0, 5, 6, 7, 8, 20, 30, 40] }],
    ["*/90 */25 */40 */13 */8", { minutes: [0], hours: [0], dates: [1], months: [1], dows: [0] }],
    ["* * */10 */5 */3", { dates: [1, 11, 21, 31], months: [1, 6, 11], dows: [0, 3, 6] }],
    ["* * * * 5-7", { dows: [0, 5, 6] }],
    ["* * * * 0-7", {}],
  ])("'%s' lists what it matches, in a line and in an item", (pattern, expected) => {
    expect(matchOf(parseCrontab(`${pattern} a`)[0]!)).toStrictEqual({ ...every, ...expected });
    expect(matchOf(parseCronItem({ task: "a", match: pattern }))).toStrictEqual({ ...every, ...expected });
  });

  test.each([
    ["0 4 13 * 5", { date: 13, dow: 1 }, true],
    ["0 4 13 * 5", { date: 12, dow: 5 }, true],
    ["0 4 13 * 5", { date: 12, dow: 1 }, false],
    ["0 4 1-31 * 5", { date: 13, dow: 1 }, false],
    ["0 4 13 * 0-7", { date: 12, dow: 5 }, false],
    ["0 4 13 2 *", { date: 13, dow: 5 }, false],
  ])("'%s' on %o at 04:00 in January matches: %s", (match, day, expected) => {
    expect(parseCronItem({ task: "a", match }).match({ min: 0, hour: 4, month: 1, ...day })).toBe(expected);
  });

  test("comments, blank lines, indentation, carriage returns and a byte order mark are not entries", () => {
    const items = parseCrontab("\ufeff# note\r\n\r\n   \n  1 2 3 4 5 a  \r\n#x\n\t*  *\t* * *   b   {x:1} \n");
    expect(items.map(({ identifier, payload }) => [identifier, payload])).toEqual([
      ["a", null],
      ["b", { x: 1 }],
    ]);
  });

  // Word for word, since users' tests compare them.
  test.each([
    ["60 * * * * a", "Too large value '60' in minutes range in line 1 of crontab: expected values in the range 0-59."],
    ["* 24 * * * a", "Too large value '24' in hours range in line 1 of crontab: expected values in the range 0-23."],
    ["* * 0 * * a", "Too small value '0' in dates range in line 1 of crontab: expected values in the range 1-31."],
    ["* * * 13 * a", "Too large value '13' in months range in line 1 of crontab: expected values in the range 1-12."],
    [
      "* * * * 8 a",
      "Too large value '8' in days of week range in line 1 of crontab: expected values in the range 0-6.",
    ],
    [
      "1,5-3 * * * * a",
      "Invalid range '5-3' in minutes range in line 1 of crontab: destination is not larger than source",
    ],
    [
      "*/0 * * * * a",
      "Invalid wildcard expression '*/0' in minutes range in line 1 of crontab: divisor '0' expected to be greater than zero",
    ],
    [
      "5/2 * * * * a",
      "Unsupported syntax '5/2' in minutes range in line 1 of crontab: this doesn't appear to be a number, range or wildcard",
    ],
    [
      "1,,2 * * * * a",
      "Unsupported syntax '' in minutes range in line 1 of crontab: this doesn't appear to be a number, range or wildcard",
    ],
    ["\n# x\n* * * * *", "Could not process line '3' of crontab: '* * * * *'"],
    ["* * * * a", "Could not process line '1' of crontab: '* * * * a'"],
    ["* * * * * 9a", "Invalid command specification in line 1 of crontab."],
    ["* * * * * a ?id=x ?max=1", "Invalid command specification in line 1 of crontab."],
    ["* * * * * a ? {a:1}", "Invalid command specification in line 1 of crontab."],
    ["* * * * * a [1]", "Invalid command specification in line 1 of crontab."],
    [
      "* * * * * a ?foo=1",
      "Options on line 1 of crontab contains unsupported key 'foo'; supported keys are: 'id', 'fill', 'max', 'queue', 'jobKey', 'jobKeyMode', 'priority'.",
    ],
    [
      "* * * * * a ?=",
      "Options on line 1 of crontab contains unsupported key ''; supported keys are: 'id', 'fill', 'max', 'queue', 'jobKey', 'jobKeyMode', 'priority'.",
    ],
    [
      "* * * * * a ?id=9",
      "Options on line 1 of crontab contains invalid value for 'id', value '9' is not compatible with this option.",
    ],
    [
      "* * * * * a ?id=a&id=b",
      "Options on line 1 of crontab contains invalid value for 'id', did you specify it more than once?",
    ],
    [
      "* * * * * a ?fill=1x",
      "Options on line 1 of crontab contains invalid value for 'fill', value '1x' is not compatible with this option.",
    ],
    [
      "* * * * * a ?max",
      "Options on line 1 of crontab contains invalid value for 'max', value '' is not compatible with this option.",
    ],
    [
      "* * * * * a ?queue=a%20b",
      "Options on line 1 of crontab contains invalid value for 'queue', value 'a b' is not compatible with this option.",
    ],
    [
      "* * * * * a ?jobKeyMode=unsafe_dedupe",
      "Options on line 1 of crontab contains invalid value for 'jobKeyMode', value 'unsafe_dedupe' is not compatible with this option.",
    ],
    [
      "* * * * * a ?priority=x",
      "Options on line 1 of crontab contains invalid value for 'priority', value 'x' is not compatible with this option.",
    ],
    ["* * * * * a {a:}", "Failed to parse JSON5 payload on line 1 of crontab: JSON5: invalid character '}' at 1:4"],
    [
      "* * * * * a\n* * * * * a\n* * * * * b\n* * * * * b",
      "Invalid crontab; duplicate identifiers found: 'a', 'b' - please use '?id=...' to specify unique identifiers for your cron items",
    ],
  ])("the crontab %j is refused: %s", (crontab, sentence) => {
    expect(messageOf(() => parseCrontab(crontab))).toBe(sentence);
  });

  test("of several items the one that is wrong is named", () => {
    const items = [{ task: "a", match: "* * * * *" }, { task: "b", match: "foo" }, null] as CronItem[];
    const message = messageOf(() => parseCronItems(items.slice(0, 2)));
    expect(message).toContain("Invalid cron pattern 'foo' in item 1 of parseCronItems call");
    if (isOurs) expect(messageOf(() => parseCronItems(items.slice(2)))).toContain("item 0 of parseCronItems call");
  });

  test("an item has only the options that are given, and an empty payload", () => {
    const match = (): boolean => true;
    const options = { maxAttempts: 3, jobKey: "k" };
    const items = parseCronItems([
      { task: "a", match: "* * * * *" },
      { task: "a", match, options, payload: { x: 1 }, identifier: "z" },
    ]);
    expect(items.map(withoutMark)).toStrictEqual([
      { match: expect.any(Function), task: "a", options: { backfillPeriod: 0 }, payload: {}, identifier: "a" },
      { match, task: "a", options: { backfillPeriod: 0, ...options }, payload: { x: 1 }, identifier: "z" },
    ]);
  });

  test.each([
    [undefined, "Invalid 'match' configuration"],
    [5, "Invalid 'match' configuration"],
    ["foo", "Invalid cron pattern 'foo' in parseCronItem call"],
    ["* * * * * ", "Invalid cron pattern '* * * * * ' in parseCronItem call"],
    ["60 * * * *", "Too large value '60' in minutes range in parseCronItem call: expected values in the range 0-59."],
  ])("an item with the match %j is refused: %s", (match, sentence) => {
    expect(() => parseCronItem({ task: "a", match } as CronItem)).toThrow(sentence);
  });

  test("the older 'pattern' is still read by ours; the original only says how it is spelt now", () => {
    const parse = (): ParsedCronItem => parseCronItem({ task: "a", pattern: "5 * * * *" });
    if (isOurs) expect(matchOf(parse())).toEqual({ ...every, minutes: [5] });
    else expect(parse).toThrow("Please rename the 'pattern' property to 'match'");
  });

  test("the items of a file, of a file that is not there, and of one that is wrong", async () => {
    const path = await crontabFile("# jobs\n0 4 * * 1 a ?id=x {n: 1}\n* * * * * b\n");
    const watched = await getCronItems({ logger }, path);
    expect(watched.items.map(({ task, identifier, payload }) => [task, identifier, payload])).toEqual([
      ["a", "x", { n: 1 }],
      ["b", "b", null],
    ]);
    await watched.release();
    const lines: [string, string][] = [];
    const remembering = new Logger(() => (level, message) => void lines.push([level, message]));
    const nowhere = `/nowhere/${randomUUID()}`;
    const absent = await getCronItems({ logger: remembering }, nowhere);
    expect(absent.items).toEqual([]);
    await absent.release();
    const unreadable = await getCronItems({ logger: remembering }, tmpdir());
    expect(unreadable.items).toEqual([]);
    expect(lines).toEqual([
      // Somebody named the file, so that we speak up.
      [isOurs ? "warning" : "info", `Failed to read crontab file '${nowhere}'; cron is disabled`],
      ["error", expect.stringMatching(/^Failed to read crontab file '.*': .*EISDIR/)],
    ]);
    const wrong = await crontabFile("* * * * * a\n* * * * x b\n");
    await expect(getCronItems({ logger }, wrong)).rejects.toThrow(
      "Could not process line '2' of crontab: '* * * * x b'",
    );
  });
});
