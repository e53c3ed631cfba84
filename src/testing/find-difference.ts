import { inspect } from "node:util";

interface Matcher {
  asymmetricMatch(value: unknown): boolean;
}

/**
 * Where a value lacks something that is expected of it; undefined if it has all. Objects may have more than expected, arrays
 * may not. Matchers of vitest and jest decide for themselves.
 */
export function findDifference(expected: unknown, actual: unknown, path = ""): string | undefined {
  if (isMatcher(expected)) return expected.asymmetricMatch(actual) ? undefined : describe(path, expected, actual);
  if (Array.isArray(expected)) {
    if (!Array.isArray(actual) || actual.length !== expected.length) return describe(path, expected, actual);
    return first(expected.map((item, index) => findDifference(item, actual[index], `${path}[${index}]`)));
  }
  // A payload was written as JSON, and so is a date in it.
  if (expected instanceof Date && typeof actual === "string") return findDifference(expected.toJSON(), actual, path);
  if (typeof expected !== "object" || expected === null) {
    return Object.is(expected, actual) ? undefined : describe(path, expected, actual);
  }
  if (typeof actual !== "object" || actual === null) return describe(path, expected, actual);
  return first(
    Object.entries(expected)
      .filter(([, value]) => value !== undefined)
      .map(([key, value]) => findDifference(value, Object(actual)[key], path === "" ? key : `${path}.${key}`)),
  );
}

function first(differences: readonly (string | undefined)[]): string | undefined {
  return differences.find((difference) => difference !== undefined);
}

function isMatcher(value: unknown): value is Matcher {
  return typeof value === "object" && value !== null && "asymmetricMatch" in value;
}

function describe(path: string, expected: unknown, actual: unknown): string {
  return `${path} is ${inspect(actual)}, expected ${inspect(expected)}`;
}
