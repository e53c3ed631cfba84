import type { Readable } from "node:stream";

/** A longer line is cut: its head and its tail are kept. */
const maxLineLength = 8_192;
/** Of one run and stream, this much goes into the log; of what follows, only the last lines. */
const maxLoggedLength = 1_048_576;
const lastLines = 20;

/** What is still to be said when the program has ended. */
export interface Relay {
  /** The last line that was not blank. */
  readonly last: string;
}

/** Logs what a program prints, line by line. A program may print without end: neither memory nor log grow with it. */
export function relayOutput(stream: Readable, log: (line: string) => void): Relay {
  const relay = { last: "" };
  const line = new LongLine();
  const held: string[] = [];
  let logged = 0;
  let skipped = 0;

  const endLine = (): void => {
    const text = line.take();
    if (text.trim() === "") return;
    relay.last = text;
    logged += text.length;
    if (logged <= maxLoggedLength) log(text);
    else held.push(text);
    if (held.length <= lastLines) return;
    held.shift();
    skipped++;
  };
  stream.setEncoding("utf8");
  stream.on("data", (chunk: string) => {
    const [rest, ...more] = chunk.split(/\r\n|\n|\r/);
    line.add(rest!);
    for (const part of more) {
      endLine();
      line.add(part);
    }
  });
  stream.on("end", () => {
    endLine();
    if (skipped > 0) log(`… (${skipped.toLocaleString("en")} lines of output left out) …`);
    for (const text of held) log(text);
  });
  return relay;
}

/** A line that is being read: its beginning, its end, and how much was cut out between them. */
class LongLine {
  #head = "";
  #tail = "";
  #cut = 0;

  add(text: string): void {
    const room = maxLineLength / 2 - this.#head.length;
    this.#head += text.slice(0, room);
    this.#tail += text.slice(room);
    const surplus = this.#tail.length - maxLineLength / 2;
    if (surplus <= 0) return;
    this.#tail = this.#tail.slice(surplus);
    this.#cut += surplus;
  }

  take(): string {
    const note = this.#cut > 0 ? `… (${this.#cut.toLocaleString("en")} characters cut) …` : "";
    const line = this.#head + note + this.#tail;
    this.#head = "";
    this.#tail = "";
    this.#cut = 0;
    return line;
  }
}
