import type { PayloadProblem, PayloadSchema } from "../../contract.ts";

/** One key of a payload, as a form asks for it. */
export interface PayloadField {
  readonly name: string;
  readonly isRequired: boolean;
  readonly kind: "text" | "number" | "choice" | "json";
  /** Of a choice. */
  readonly options: readonly unknown[];
  readonly hint: string | undefined;
}

type Dictionary = Readonly<Record<string, unknown>>;

const isDictionary = (value: unknown): value is Dictionary =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The fields of a payload that is an object with known keys; undefined if it is anything else. */
export function fieldsOf(schema: PayloadSchema | null): readonly PayloadField[] | undefined {
  if (schema?.type !== "object" || !isDictionary(schema.properties)) return undefined;
  const required: readonly unknown[] = Array.isArray(schema.required) ? schema.required : [];
  const fields = Object.entries(schema.properties).map(([name, given]) =>
    fieldOf(name, isDictionary(given) ? given : {}, required.includes(name)),
  );
  return fields.length > 0 ? fields : undefined;
}

function fieldOf(name: string, schema: PayloadSchema, isRequired: boolean): PayloadField {
  const { type, format, description } = schema;
  const options = type === "boolean" ? [true, false] : Array.isArray(schema.enum) ? schema.enum : [];
  const kind =
    options.length > 0
      ? "choice"
      : type === "string"
        ? "text"
        : type === "number" || type === "integer"
          ? "number"
          : "json";
  const preset = schema.default === undefined ? undefined : `${JSON.stringify(schema.default)} if empty`;
  const what = typeof description === "string" ? description : nameType(type, format);
  return { name, isRequired, kind, options, hint: [what, preset].filter(Boolean).join("; ") || undefined };
}

function nameType(type: unknown, format: unknown): string | undefined {
  if (typeof format === "string") return format;
  if (type === "array" || type === "object") return `${type}, as JSON`;
  return typeof type === "string" && type !== "string" && type !== "boolean" ? type : undefined;
}

/** The text that a field shows for a value. */
export function textOf({ kind }: PayloadField, value: unknown): string {
  if (value === undefined) return "";
  return kind === "text" && typeof value === "string" ? value : JSON.stringify(value);
}

/** The value that a field's text stands for; undefined leaves the key out. What is no number or no JSON stays text, and the server says that it does not fit. */
export function meaningOf({ kind }: PayloadField, text: string): unknown {
  if (text === "") return undefined;
  if (kind === "text") return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** What is wrong with one field, or, with null, with no field in particular. */
export function problemsOf(
  problems: readonly PayloadProblem[],
  name: string | null,
  fields: readonly PayloadField[],
): string | undefined {
  const owner = ({ path }: PayloadProblem): string | undefined =>
    fields.find(
      (field) => path === field.name || path.startsWith(`${field.name}.`) || path.startsWith(`${field.name}[`),
    )?.name;
  const own = problems.filter((problem) => (owner(problem) ?? null) === name);
  const say = ({ path, message }: PayloadProblem): string =>
    path === "" || path === name ? message : `${path}: ${message}`;
  return own.length === 0 ? undefined : own.map(say).join("; ");
}
