import { HathiError } from "../errors.ts";

/** One fault, and where it is. `line` and `column` count from 1 and are absent for items that are not text. */
export interface CrontabProblem {
  readonly file: string;
  readonly line?: number;
  readonly column?: number;
  /** The text that is wrong. */
  readonly text: string;
  readonly expected: string;
  /** The whole fault in one sentence or two, without its place. */
  readonly message: string;
}

/** A crontab or cron item that cannot be understood; carries every fault found, not only the first. */
export class CrontabError extends HathiError {
  readonly code = "BAD_CRONTAB";
  readonly problems: readonly CrontabProblem[];

  constructor(problems: readonly CrontabProblem[]) {
    super(describeProblems(problems));
    this.problems = problems;
  }
}

function describeProblems(problems: readonly CrontabProblem[]): string {
  const lines = problems.map(describeProblem);
  return lines.length === 1 ? lines[0]! : `${lines.length} problems found:\n${lines.join("\n")}`;
}

function describeProblem({ file, line, column, message }: CrontabProblem): string {
  return line === undefined ? message : `${file}:${line}:${column ?? 1}: ${message}`;
}
