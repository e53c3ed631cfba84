import { once } from "node:events";
import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { relayOutput } from "../../src/tasks/relay-output.ts";

async function relay(chunks: Iterable<string | Buffer>): Promise<{ lines: string[]; last: string }> {
  const stream = Readable.from(chunks, { objectMode: false });
  const lines: string[] = [];
  const relayed = relayOutput(stream, (line) => lines.push(line));
  await once(stream, "end");
  return { lines, last: relayed.last };
}

test("lines are passed on however they are cut into pieces; blank ones are not", async () => {
  const elephant = Buffer.from("🐘");
  expect(
    await relay(["on", "e\ntw", "o\r", "\n\n  \nthree\rfour", elephant.subarray(0, 2), elephant.subarray(2)]),
  ).toEqual({
    lines: ["one", "two", "three", "four🐘"],
    last: "four🐘",
  });
});

test("a line without end is cut to its head and its tail", async () => {
  const { lines, last } = await relay(["HEAD", ...Array<string>(1_000).fill("x".repeat(65_536)), "TAIL"]);
  expect(lines).toHaveLength(1);
  expect(last.length).toBeLessThan(8_300);
  expect(`${last.slice(0, 5)} ${last.slice(-5)}`).toBe("HEADx xTAIL");
  expect(last).toContain("65,527,816 characters cut");
});

test("of output without end the first megabyte and the last lines are passed on", async () => {
  const count = 500_000;
  const { lines, last } = await relay(Array.from({ length: count }, (_, index) => `line ${index}\n`));
  expect(lines.join("\n").length).toBeLessThan(1_200_000);
  expect(lines[0]).toBe("line 0");
  expect(lines.slice(-20)).toEqual(Array.from({ length: 20 }, (_, index) => `line ${count - 20 + index}`));
  const left = count - (lines.length - 1);
  expect(lines.at(-21)).toBe(`… (${left.toLocaleString("en")} lines of output left out) …`);
  expect(last).toBe(`line ${count - 1}`);
});
