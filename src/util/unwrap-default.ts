/** A module's default export, which may be wrapped twice: by a compiler's `__esModule`, and by Node importing CommonJS. */
export function unwrapDefault(module: unknown): unknown {
  let value = module;
  for (let level = 0; level < 3; level++) {
    if (typeof value !== "object" || value === null || !("default" in value)) break;
    value = value.default;
  }
  return value;
}
