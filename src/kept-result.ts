/** What is left of a value that was written as JSON and read again. */
type AsJson<Value> = unknown extends Value
  ? unknown
  : Value extends string | number | boolean | null
    ? Value
    : Value extends undefined | void
      ? null
      : Value extends { toJSON(): infer Written }
        ? AsJson<Written>
        : Value extends bigint | symbol | ((...args: never[]) => unknown)
          ? never
          : Value extends readonly unknown[]
            ? { -readonly [Index in keyof Value]: AsJson<Value[Index]> }
            : Value extends object
              ? AsJsonObject<Value>
              : never;

type Unwritten = undefined | symbol | ((...args: never[]) => unknown);

type AsJsonObject<Value extends object> = {
  -readonly [Key in keyof Value as Key extends symbol
    ? never
    : [Exclude<Value[Key], Unwritten>] extends [never]
      ? never
      : Key]: AsJson<Exclude<Value[Key], Unwritten>> | (undefined extends Value[Key] ? undefined : never);
};

/** What `waitForJob` gives for a task that returns this: nothing, if its result may not be kept. */
export type KeptResult<Returned, Keep extends boolean> =
  | AsJson<Awaited<Returned>>
  | ([Keep] extends [true] ? never : undefined);
