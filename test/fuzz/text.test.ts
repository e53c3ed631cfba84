import fc from "fast-check";
import { expect, test, vi } from "vitest";
import { commandNames } from "../../src/cli/commands.ts";
import { parseMoment, parseSpan, wholeNumber } from "../../src/cli/flags.ts";
import { parseJobLine } from "../../src/cli/parse-job-line.ts";
import { runProgram } from "../../src/cli/program.ts";
import { UsageError } from "../../src/cli/usage-error.ts";
import { CrontabError } from "../../src/cron/crontab-error.ts";
import { parseCrontab } from "../../src/cron/parse-crontab.ts";
import { nastyNumber, nastyString, seeded } from "./kit.ts";

vi.setConfig({ testTimeout: 180_000 });

/** Runs it, and gives what it threw if that is of the kind that people are to see. */
function refusalOf(kind: new (...args: never[]) => Error, action: () => unknown): Error | undefined {
  try {
    action();
    return undefined;
  } catch (error) {
    expect(error).toBeInstanceOf(kind);
    return error as Error;
  }
}

const field = fc.oneof(
  fc.constantFrom(
    "*",
    "*/5",
    "1-5",
    "0",
    "7",
    "59",
    "60",
    "1,2,3",
    "*/0",
    "5-1",
    "-",
    ",",
    "1,,2",
    "*/*",
    "99999999999",
    "L",
  ),
  nastyString,
);
const words = fc.constantFrom(
  "task",
  "?id=a",
  "?fill=1d",
  "?max=0",
  "?priority=99999",
  "?queue=q&tz=Europe/Berlin",
  "?tz=Mars",
  '{"a":1}',
  "{a:1}",
  "{",
  "?",
  "?=",
  "?id",
  "@daily",
  "CRON_TZ=UTC",
  "# no",
);
const line = fc
  .tuple(fc.array(field, { minLength: 3, maxLength: 6 }), fc.array(fc.oneof(words, nastyString), { maxLength: 4 }))
  .map(([fields, rest]) => [...fields, ...rest].join(" "));

test("any crontab is read, or refused with the lines that are wrong", () => {
  fc.assert(
    fc.property(fc.array(line, { maxLength: 4 }), (lines) => {
      const error = refusalOf(CrontabError, () => parseCrontab(lines.join("\n"))) as CrontabError | undefined;
      if (error) expect(error.problems.length).toBeGreaterThan(0);
    }),
    seeded(3_000),
  );
});

test("any text of a flag is understood, or refused as a mistake of the user's", () => {
  fc.assert(
    fc.property(
      fc.oneof(nastyString, fc.constantFrom("1h30m", "90", "7d", "now", "2026-12-31", "9".repeat(400) + "d")),
      nastyNumber,
      (text, number) => {
        refusalOf(UsageError, () => {
          const span = parseSpan("after", text);
          expect(span).toBeGreaterThanOrEqual(0);
        });
        refusalOf(UsageError, () => expect(parseMoment("run-at", text, 1).getTime()).not.toBeNaN());
        refusalOf(UsageError, () => expect(Number.isInteger(wholeNumber("jobs", number, 1, 100))).toBe(true));
        refusalOf(UsageError, () => expect(parseJobLine(text, "file:1").identifier).toBeTypeOf("string"));
      },
    ),
    seeded(2_000),
  );
});

const argument = fc.oneof(
  fc.constantFrom(
    "--json",
    "--limit",
    "0",
    "-1",
    "1e9",
    "--before",
    "--state",
    "ready",
    "--since",
    "5m",
    "--task",
    "--nosuch",
    "--",
    "-x",
    "=",
    "--limit=x",
    "--schema",
    "--search",
    "--queue",
    "--reason",
    "--yes",
    "--dry-run",
    "--period",
    "--key",
  ),
  nastyString,
);
// Those that would go on until they are stopped, or write files, are left out.
const command = fc.constantFrom(
  "nosuch",
  ...commandNames.filter((name) => !["run", "dashboard", "forward", "init"].includes(name)),
);

test("any arguments end with an answer or one mistake in words, never with a stack", async () => {
  const said: string[] = [];
  const keep = (chunk: unknown): boolean => said.push(String(chunk)) > 0;
  const spies = [process.stdout, process.stderr].map((stream) => vi.spyOn(stream, "write").mockImplementation(keep));
  try {
    await fc.assert(
      fc.asyncProperty(command, fc.array(argument, { maxLength: 5 }), async (name, args) => {
        said.length = 0;
        // Nothing answers there, so whatever is understood ends before it can change anything.
        const code = await runProgram([name, "-c", "postgres://127.0.0.1:1/none", ...args]);
        expect([0, 1]).toContain(code);
        expect(said.join("")).not.toMatch(/^ +at .+:\d+/m);
      }),
      seeded(150),
    );
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
});
