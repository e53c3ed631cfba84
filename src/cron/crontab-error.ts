import { HathiError } from "../errors.ts";

/** One fault, and where it is. `line` and `column` count from 1 and are absent for items that are not text. */
export interface CrontabProblem {
  readonly file: string;
  readonly line?: number;
  readonly column?: number;
  /** The text that is wrong. */
  readonly text: string;
  readonly expected: string;
  /** The fault in one sentence, without its place. */
  readonly message: string;
  /** What one may want to know beyond it. */
  readonly more?: string;
}

/**
 * A crontab or cron item that cannot be understood; carries every fault found, not only the first. If a string
 * has a single fault, the message is Graphile Worker's own, since programs and tests compare it; `problems` says more.
 */
export class CrontabError extends HathiError {
  readonly code = "BAD_CRONTAB";
  readonly problems: readonly CrontabProblem[];

  constructor(problems: readonly CrontabProblem[], { isNamed = true } = {}) {
    super(problems.length === 1 && !isNamed ? problems[0]!.message : describeProblems(problems));
    this.problems = problems;
  }
}

function describeProblems(problems: readonly CrontabProblem[]): string {
  const lines = problems.map(describeProblem);
  return lines.length === 1 ? lines[0]! : `${lines.length} problems found:\n${lines.join("\n")}`;
}

function describeProblem({ file, line, column, message, more }: CrontabProblem): string {
  const text = more === undefined ? message : `${message}${more}`;
  return line === undefined ? text : `${file}:${line}:${column ?? 1}: ${text}`;
}
