import { inspect } from "node:util";
import { badRequest } from "./refusal.ts";

/** Reads what a caller sent, field by field: every value is checked, and what is not known is refused. */
export class Fields {
  readonly #values: Readonly<Record<string, unknown>>;

  constructor(values: unknown, known: readonly string[]) {
    if (typeof values !== "object" || values === null || Array.isArray(values)) {
      throw badRequest(`An object was expected, got ${shown(values)}.`);
    }
    const unknown = Object.keys(values).find((key) => !known.includes(key));
    if (unknown !== undefined) throw badRequest(`Unknown field ${shown(unknown)}; use ${known.join(", ") || "none"}.`);
    this.#values = values as Record<string, unknown>;
  }

  has(name: string): boolean {
    return this.#values[name] !== undefined && this.#values[name] !== null;
  }

  raw(name: string): unknown {
    return this.#values[name];
  }

  text(name: string, max = 1_000): string {
    const value = this.#values[name];
    if (typeof value === "string" && value !== "" && value.length <= max && !value.includes("\0")) return value;
    throw badRequest(`'${name}' must be a string of 1 to ${max} characters, got ${shown(value)}.`);
  }

  optionalText(name: string, max?: number): string | undefined {
    return this.has(name) && this.#values[name] !== "" ? this.text(name, max) : undefined;
  }

  oneOf<const Choice extends string>(name: string, choices: readonly Choice[]): Choice {
    const value = this.#values[name];
    const found = choices.find((choice) => choice === value);
    if (found !== undefined) return found;
    throw badRequest(`'${name}' must be one of ${choices.join(", ")}, got ${shown(value)}.`);
  }

  optionalOneOf<const Choice extends string>(name: string, choices: readonly Choice[]): Choice | undefined {
    return this.has(name) && this.#values[name] !== "" ? this.oneOf(name, choices) : undefined;
  }

  /** Numbers in addresses are texts. */
  integer(name: string, min: number, max: number): number {
    const value = this.#values[name];
    const number = typeof value === "string" && /^-?\d{1,15}$/.test(value) ? Number(value) : value;
    if (typeof number === "number" && Number.isInteger(number) && number >= min && number <= max) return number;
    throw badRequest(`'${name}' must be a whole number from ${min} to ${max}, got ${shown(value)}.`);
  }

  optionalInteger(name: string, min: number, max: number): number | undefined {
    return this.has(name) ? this.integer(name, min, max) : undefined;
  }

  id(name: string): string {
    const value = this.#values[name];
    if (typeof value === "string" && /^\d{1,18}$/.test(value)) return value;
    throw badRequest(`'${name}' must be an id such as '42', got ${shown(value)}.`);
  }

  optionalId(name: string): string | undefined {
    return this.has(name) && this.#values[name] !== "" ? this.id(name) : undefined;
  }

  ids(name: string): string[] {
    const value = this.#values[name];
    const areIds = Array.isArray(value) && value.every((id) => typeof id === "string" && /^\d{1,18}$/.test(id));
    if (areIds && value.length > 0 && value.length <= 1_000) return [...new Set(value as string[])];
    throw badRequest(`'${name}' must be a list of 1 to 1,000 ids, got ${shown(value)}.`);
  }

  moment(name: string): Date {
    const value = this.#values[name];
    const date = typeof value === "string" && /^\d{4}-\d\d-\d\dT/.test(value) ? new Date(value) : undefined;
    if (date && !Number.isNaN(date.getTime()) && date.getUTCFullYear() >= 1) return date;
    throw badRequest(`'${name}' must be a moment such as 2026-12-31T18:00:00Z, got ${shown(value)}.`);
  }

  optionalMoment(name: string): Date | undefined {
    return this.has(name) && this.#values[name] !== "" ? this.moment(name) : undefined;
  }

  texts(name: string, most: number): string[] | undefined {
    if (!this.has(name)) return undefined;
    const value = this.#values[name];
    const isList = Array.isArray(value) && value.length <= most;
    if (
      isList &&
      value.every((text) => typeof text === "string" && text !== "" && text.length <= 128 && !text.includes("\0"))
    ) {
      return value as string[];
    }
    throw badRequest(`'${name}' must be a list of at most ${most} texts, got ${shown(value)}.`);
  }
}

function shown(value: unknown): string {
  const text = inspect(value, {
    depth: 1,
    maxArrayLength: 3,
    maxStringLength: 80,
    breakLength: Number.POSITIVE_INFINITY,
  });
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}
