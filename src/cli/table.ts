import { stripVTControlCharacters } from "node:util";

export interface Column<Row> {
  readonly title: string;
  readonly text: (row: Row) => string;
  readonly align?: "left" | "right";
  /** Longer texts are cut. */
  readonly maxWidth?: number;
}

/** Rows under titles, in columns as wide as they need to be. */
export function formatTable<Row>(rows: readonly Row[], columns: readonly Column<Row>[]): string {
  const lines = [
    columns.map((column) => column.title),
    ...rows.map((row) => columns.map((column) => cut(column.text(row).replaceAll(/\s+/g, " "), column.maxWidth))),
  ];
  const widths = columns.map((_, index) => Math.max(...lines.map((cells) => widthOf(cells[index] ?? ""))));
  return lines
    .map((cells) =>
      cells
        .map((cell, index) => {
          const padding = " ".repeat(Math.max(0, (widths[index] ?? 0) - widthOf(cell)));
          return columns[index]?.align === "right" ? padding + cell : cell + padding;
        })
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

function widthOf(text: string): number {
  return stripVTControlCharacters(text).length;
}

function cut(text: string, maxWidth = 60): string {
  return text.length > maxWidth && widthOf(text) === text.length ? `${text.slice(0, maxWidth - 1)}…` : text;
}
