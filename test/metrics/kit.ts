/** One line of Prometheus text. */
export interface Line {
  readonly name: string;
  readonly labels: Record<string, string>;
  readonly value: number;
}

/** Reads Prometheus text as its own parser would: every line must be one that it knows. */
export function parse(text: string): Line[] {
  const lines: Line[] = [];
  for (const line of text.split("\n")) {
    if (line === "" || /^# (HELP|TYPE) [a-z_]+ ./.test(line)) continue;
    const match = /^([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\[\\"n])*",?)*)\})? (\S+)$/.exec(line);
    if (!match) throw new Error(`Not a line of Prometheus text: ${line}`);
    const labels = [...(match[2] ?? "").matchAll(/([a-z_]+)="((?:[^"\\]|\\.)*)"/g)].map(([, name, value]) => [
      name,
      value!.replace(/\\(.)/g, (_, escaped: string) => (escaped === "n" ? "\n" : escaped)),
    ]);
    lines.push({ name: match[1]!, labels: Object.fromEntries(labels) as Line["labels"], value: Number(match[3]) });
  }
  return lines;
}

/** The value of a series; undefined if it is not there. */
export function sample(text: string, name: string, labels: Record<string, string> = {}): number | undefined {
  const wanted = Object.entries(labels);
  return parse(text).find((line) => line.name === name && wanted.every(([key, value]) => line.labels[key] === value))
    ?.value;
}
