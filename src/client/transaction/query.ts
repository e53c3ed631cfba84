/** What an adapter makes of a transaction: text with `$1`, `$2`… and text values go in, rows come out. */
export type Query = (text: string, values: (string | null)[]) => Promise<TextRow[]>;

/** A row as it crosses every driver: nothing but text, so that no driver's own parsing can touch it. */
export interface TextRow {
  readonly fields: string;
}
