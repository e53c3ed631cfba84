import { type CronField, cronFields, looksLikeField, parseField } from "./cron-field.ts";
import type { ParsedCronMatch } from "./cron-item.ts";
import { type ReportProblem, reportFrom } from "./report-problem.ts";

/** A piece of a line and where it starts. */
export interface Token {
  readonly text: string;
  readonly offset: number;
}

const fieldOrder = Object.entries(cronFields) as [keyof ParsedCronMatch, CronField][];

const nicknames: Readonly<Record<string, string>> = {
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
  "@monthly": "0 0 1 * *",
  "@weekly": "0 0 * * 0",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@hourly": "0 * * * *",
};

export const patternSyntax = `five time fields (minute hour date month weekday) or one of ${Object.keys(nicknames).join(" ")}`;

/** Splits off what says *when*: five fields or a nickname. `rest` is whatever follows. */
export function splitPattern(line: string): { tokens: Token[]; rest: Token } | undefined {
  const nickname = /^(@\S*)(?:\s+(.*))?$/.exec(line);
  if (nickname) {
    const rest = nickname[2] ?? "";
    return { tokens: [{ text: nickname[1]!, offset: 0 }], rest: { text: rest, offset: line.length - rest.length } };
  }
  const found = /^(\S+)\s+(\S+)\s+(\S+)\s+(\S+)\s+(\S+)(?:\s+(.*))?$/d.exec(line);
  if (!found) return undefined;
  const tokens = [1, 2, 3, 4, 5].map((group) => ({ text: found[group]!, offset: found.indices![group]![0] }));
  return { tokens, rest: { text: found[6] ?? "", offset: found.indices![6]?.[0] ?? line.length } };
}

/** The first token that can be no time field at all. */
export function findStrangeToken(tokens: readonly Token[]): Token | undefined {
  if (tokens.length === 1) return tokens[0]!.text.toLowerCase() in nicknames ? undefined : tokens[0];
  return tokens.find((token, index) => !looksLikeField(token.text, fieldOrder[index]![1]));
}

/** What the tokens match. Tokens that are no fields count as matching nothing: whoever calls reports them. */
export function parsePattern(tokens: readonly Token[], source: string, report: ReportProblem): ParsedCronMatch {
  const fields = tokens.length === 1 ? expandNickname(tokens[0]!) : tokens;
  const match: ParsedCronMatch = { minutes: [], hours: [], dates: [], months: [], dows: [] };
  fieldOrder.forEach(([key, field], index) => {
    const token = fields[index];
    if (token && looksLikeField(token.text, field)) {
      match[key] = parseField(token.text, field, source, reportFrom(report, token.offset));
    }
  });
  return match;
}

function expandNickname({ text, offset }: Token): Token[] {
  return (nicknames[text.toLowerCase()] ?? "").split(" ").map((field) => ({ text: field, offset }));
}
