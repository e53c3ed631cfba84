/** What a column would like to be, and how far it can give way. */
export interface WantedColumn {
  readonly width: number;
  /** Can be cut down to this; undefined: cannot be cut. */
  readonly minWidth: number | undefined;
  /** Can be left out, the highest number first; undefined: never. */
  readonly drop: number | undefined;
  readonly isEmpty: boolean;
}

/**
 * The widths of columns in lines of at most `total` characters; null for a column that is left out. Empty columns go first; then
 * the widest are cut; only when that is not enough, the least important go.
 */
export function fitColumns(columns: readonly WantedColumn[], gap: number, total: number): (number | null)[] {
  let kept = columns.map((_, index) => index);
  const least = (index: number): number => Math.min(columns[index]!.minWidth ?? Infinity, columns[index]!.width);
  const fits = (widthOf: (index: number) => number): boolean =>
    kept.reduce((sum, index) => sum + widthOf(index) + gap, -gap) <= total;

  if (!fits((index) => columns[index]!.width)) {
    kept = kept.filter((index) => columns[index]!.drop === undefined || !columns[index]!.isEmpty);
  }
  while (!fits(least)) {
    const next = kept
      .filter((index) => columns[index]!.drop !== undefined)
      .sort((a, b) => columns[b]!.drop! - columns[a]!.drop!)[0];
    if (next === undefined) break;
    kept = kept.filter((index) => index !== next);
  }
  const widths = columns.map((column, index) => (kept.includes(index) ? column.width : null));
  while (!fits((index) => widths[index]!)) {
    const widest = kept.filter((index) => widths[index]! > least(index)).sort((a, b) => widths[b]! - widths[a]!)[0];
    if (widest === undefined) break;
    widths[widest]! -= 1;
  }
  return widths;
}
