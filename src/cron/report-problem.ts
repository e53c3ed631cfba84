/** A fault in one piece of text; `offset` counts characters from the start of that piece. */
interface FoundProblem {
  readonly offset: number;
  readonly text: string;
  readonly expected: string;
  readonly message: string;
  readonly more?: string;
}

/** Takes a fault and lets parsing go on, so that one reading finds them all. */
export type ReportProblem = (problem: FoundProblem) => void;

/** Reports into the same place, with offsets counted from `start`. */
export function reportFrom(report: ReportProblem, start: number): ReportProblem {
  return (problem) => report({ ...problem, offset: problem.offset + start });
}
