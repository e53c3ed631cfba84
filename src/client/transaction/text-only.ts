import type { TextRow } from "./query.ts";

/*
 * Drivers disagree about types: one gives a bigint as a number, another leaves JSON or dates unparsed, a third turns a string
 * into JSON once more because the parameter is of type json; and their users register parsers of their own. They all agree
 * about text. So every parameter is declared and sent as text, and every row comes back as one text.
 */

/**
 * The same question, in text only. The statement casts each parameter and makes its ids text by itself (a bigint is more than a
 * JSON number can hold); it is a query, or a writing statement with `returning`.
 */
export function askForText(text: string): string {
  const asked = text.replace(/\$\d+/g, (parameter) => `${parameter}::text`);
  return `with hathi_row as (${asked}) select row_to_json(hathi_row)::text as fields from hathi_row`;
}

/** A value as PostgreSQL reads it from text. */
export function toText(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (typeof value === "string") return value;
  if (value instanceof Date) return value.toISOString();
  if (Array.isArray(value)) return `{${value.map(toArrayElement).join(",")}}`;
  return typeof value === "object" ? JSON.stringify(value) : `${value as number | bigint | boolean}`;
}

function toArrayElement(value: unknown): string {
  const text = toText(value);
  if (text === null) return "NULL";
  return Array.isArray(value) ? text : `"${text.replace(/["\\]/g, "\\$&")}"`;
}

const dateColumns = ["run_at", "created_at", "updated_at", "locked_at"];

/** The row as node-postgres gives it: moments as dates, JSON parsed. */
export function readRow<Row>({ fields }: TextRow): Row {
  const row = JSON.parse(fields) as Record<string, unknown>;
  for (const column of dateColumns) {
    const moment = row[column];
    if (typeof moment === "string") row[column] = toMoment(moment);
  }
  return row as Row;
}

function toMoment(text: string): Date | number {
  if (text === "infinity") return Number.POSITIVE_INFINITY;
  if (text === "-infinity") return Number.NEGATIVE_INFINITY;
  return new Date(text);
}
