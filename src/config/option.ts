import { nearest } from "../util/nearest.ts";

/** What a value may be: reads what users give (`In`) into what the program works with (`Out`), or throws a `ConfigError`. */
export interface Kind<In, Out = In> {
  /** The type as TypeScript writes it, for the reference. */
  readonly type: string;
  read(value: unknown, name: string): Out;
  /** The options inside, if it is a group of them. */
  readonly inner?: OptionTable;
  /** Never there; it carries the type. */
  readonly given?: In;
}

/** One option. Its doc comment in the table is what editors show and what the reference prints. */
export interface Option<In, Out = In, Default = undefined, Place = "anywhere"> {
  readonly kind: Kind<In, Out>;
  readonly default: Default;
  /** Where it may be given: directly, at `preset.worker`, or both. */
  readonly place: Place;
  /** The name it has elsewhere, which may be written here by mistake. */
  readonly otherName?: string;
}

/** An option that is called something else at `preset.worker`. */
export interface Renamed<Name extends string> {
  readonly presetName: Name;
  /** True: the preset's option says the opposite. */
  readonly isNegated: boolean;
}

export type OptionTable = { readonly [name: string]: Option<unknown, unknown, unknown, unknown> };

type InOf<Row> = Row extends Option<infer In, infer _Out, infer _Default, infer _Place> ? In : never;
type ResolvedOf<Row> =
  Row extends Option<infer _In, infer Out, infer Default, infer _Place>
    ? Default extends undefined
      ? Out | undefined
      : Out
    : never;
type KeysIn<Table, Place> = { [Key in keyof Table]: Table[Key] extends { place: Place } ? Key : never }[keyof Table];
type PresetKeys<Table> = KeysIn<Table, "anywhere" | "preset">;
type RenamedOf<Table> = Pick<Table, KeysIn<Table, Renamed<string>>>;
type NameOf<Row> = Row extends { place: Renamed<infer Name> } ? Name : never;

/** What users may write for a table of options. */
export type Given<Table> = { [Key in keyof Table]?: InOf<Table[Key]> };
/** What users may write for a table of options at `preset.worker`. */
export type GivenInPreset<Table> = Given<Pick<Table, PresetKeys<Table>>> & {
  [Key in keyof RenamedOf<Table> as NameOf<Table[Key & keyof Table]>]?: InOf<Table[Key & keyof Table]>;
};
/** What a table's options become once they are read: every default filled in. */
export type Resolved<Table> = { readonly [Key in keyof Table]: ResolvedOf<Table[Key]> };
/** The same for what may stand at `preset.worker`, under the names it has there. */
export type ResolvedPreset<Table> = Resolved<Pick<Table, PresetKeys<Table>>> & {
  readonly [Key in keyof RenamedOf<Table> as NameOf<Table[Key & keyof Table]>]: ResolvedOf<Table[Key & keyof Table]>;
};

type Rest<Out> = { readonly default?: Out };

/** An option that may be given directly and at `preset.worker`. */
export function option<In, Out>(kind: Kind<In, Out>): Option<In, Out>;
export function option<In, Out>(kind: Kind<In, Out>, rest: { readonly default: NoInfer<Out> }): Option<In, Out, Out>;
export function option<In, Out>(kind: Kind<In, Out>, rest: Rest<Out> = {}): Option<In, Out, Out | undefined> {
  return { kind, default: rest.default, place: "anywhere" };
}

/** An option that a preset cannot carry. */
export function directOption<In, Out>(kind: Kind<In, Out>): Option<In, Out, undefined, "direct"> {
  return { kind, default: undefined, place: "direct" };
}

/** An option that belongs into a preset. */
export function presetOption<In, Out>(
  kind: Kind<In, Out>,
  rest: { readonly default: NoInfer<Out> },
): Option<In, Out, Out, "preset"> {
  return { kind, default: rest.default, place: "preset" };
}

/** An option that has another name at `preset.worker`. */
export function renamedOption<In, Out, const Name extends string>(
  kind: Kind<In, Out>,
  rest: { readonly default: NoInfer<Out>; readonly presetName: Name; readonly isNegated?: boolean },
): Option<In, Out, Out, Renamed<Name>> {
  const { presetName, isNegated = false } = rest;
  return { kind, default: rest.default, place: { presetName, isNegated }, otherName: presetName };
}

/** The part of a table that may stand at `preset.worker`, under the names it has there. */
export function forPreset(table: OptionTable): OptionTable {
  const rows: [string, OptionTable[string]][] = [];
  for (const [name, row] of Object.entries(table)) {
    const renamed = renamedOf(row);
    if (renamed) rows.push([renamed.presetName, { ...row, default: turn(row.default, renamed), otherName: name }]);
    else if (row.place !== "direct") rows.push([name, row]);
  }
  return Object.fromEntries(rows);
}

/** Directly given options as `preset.worker` would have them. What is null or undefined is not given. */
export function toPreset(table: OptionTable, options: object): Record<string, unknown> {
  const moved: [string, unknown][] = [];
  for (const [name, value] of Object.entries(givenOf(options))) {
    const row = table[name];
    if (row === undefined || row.place === "direct") continue;
    const renamed = renamedOf(row);
    moved.push(renamed ? [renamed.presetName, turn(value, renamed)] : [name, value]);
  }
  return Object.fromEntries(moved);
}

function renamedOf({ place }: OptionTable[string]): Renamed<string> | undefined {
  return typeof place === "object" && place !== null ? (place as Renamed<string>) : undefined;
}

function turn(value: unknown, { isNegated }: Renamed<string>): unknown {
  return isNegated ? !value : value;
}

/** Checks every value and fills every gap; a value that cannot work is an error here, at once. */
export function readOptions<Table extends OptionTable>(table: Table, given: object, prefix = ""): Resolved<Table> {
  const values = given as Record<string, unknown>;
  const read = Object.entries(table).map(([name, row]) => {
    const value = values[name];
    return [name, value === undefined || value === null ? row.default : row.kind.read(value, prefix + name)];
  });
  return Object.freeze(Object.fromEntries(read)) as Resolved<Table>;
}

export function defaultsOf<Table extends OptionTable>(table: Table): Resolved<Table> {
  return readOptions(table, {});
}

/** What was given: null is upstream's other way to leave an option out. */
export function givenOf<T extends object>(values: T): { [Key in keyof T]?: NonNullable<T[Key]> } {
  const given = Object.entries(values).filter(([, value]) => value !== undefined && value !== null);
  return Object.fromEntries(given) as { [Key in keyof T]?: NonNullable<T[Key]> };
}

/** What other libraries call it, though it is spelt nothing like ours. */
const usualWords: Readonly<Record<string, string>> = {
  tasks: "taskList",
  url: "connectionString",
  databaseUrl: "connectionString",
};

/** One sentence for each key that no option has, inside groups too. With `onlyNearMisses`, other keys may belong to a plugin. */
export function findUnknownKeys(
  table: OptionTable,
  given: object,
  { prefix = "", where = "", onlyNearMisses = false } = {},
): string[] {
  const nameByWord = new Map(
    Object.entries(table).flatMap(([name, { otherName = name }]) => [
      [name, name] as const,
      [otherName, name] as const,
    ]),
  );
  return Object.entries(given).flatMap(([name, value]) => {
    const row = table[name];
    if (row === undefined) {
      const usual = Object.hasOwn(usualWords, name) ? usualWords[name]! : "";
      const meant = nameByWord.get(usual) ?? nameByWord.get(nearest(name, nameByWord.keys()) ?? "");
      if (onlyNearMisses && meant === undefined) return [];
      const question = meant === undefined ? "" : ` Did you mean '${meant}'?`;
      return [`Unknown option '${prefix}${name}'${where} is ignored.${question}`];
    }
    const { inner } = row.kind;
    if (!inner || typeof value !== "object" || value === null) return [];
    return findUnknownKeys(inner, value, { prefix: `${prefix}${name}.`, where });
  });
}
