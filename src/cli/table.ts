import { stripVTControlCharacters } from "node:util";
import { printable } from "../util/printable.ts";
import { fitColumns } from "./fit-columns.ts";

export interface Column<Row> {
  readonly title: string;
  readonly text: (row: Row) => string;
  /** Colours the finished cell. */
  readonly paint?: (cell: string) => string;
  readonly align?: "left" | "right";
  /** Longer strings are cut. */
  readonly maxWidth?: number;
  /** In a narrow terminal the column is cut down to this. */
  readonly minWidth?: number;
  /** In a narrower terminal columns are left out, the highest number first; a column without one stays. */
  readonly drop?: number;
}

const gap = "  ";

/** Rows under titles, in columns as wide as they need to be, in lines no longer than `width`. */
export function formatTable<Row>(rows: readonly Row[], columns: readonly Column<Row>[], width: number): string {
  const cells = columns.map(({ text, maxWidth }) => rows.map((row) => cut(oneLine(text(row)), maxWidth)));
  const wanted = columns.map(({ title, minWidth, drop }, index) => ({
    width: Math.max(title.length, ...cells[index]!.map((cell) => cell.length)),
    minWidth: minWidth === undefined ? undefined : Math.max(minWidth, title.length),
    drop,
    isEmpty: cells[index]!.every((cell) => cell === ""),
  }));
  const widths = fitColumns(wanted, gap.length, width);
  const lineOf = (cellOf: (column: Column<Row>, index: number) => string): string =>
    columns
      .flatMap((column, index) => (widths[index] === null ? [] : [pad(cellOf(column, index), widths[index]!, column)]))
      .join(gap)
      .trimEnd();
  return [
    lineOf(({ title }) => title),
    ...rows.map((_, row) =>
      lineOf(({ paint = (cell) => cell }, index) => paint(cut(cells[index]![row]!, widths[index]!))),
    ),
  ].join("\n");
}

function oneLine(text: string): string {
  return printable(text.replaceAll(/\s+/g, " "));
}

function pad<Row>(cell: string, width: number, { align }: Column<Row>): string {
  const padding = " ".repeat(Math.max(0, width - stripVTControlCharacters(cell).length));
  return align === "right" ? padding + cell : cell + padding;
}

function cut(text: string, maxWidth = 60): string {
  return text.length > maxWidth ? `${text.slice(0, maxWidth - 1)}…` : text;
}
