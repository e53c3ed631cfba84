import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const source = join(root, "src");
const files = readdirSync(source, { recursive: true, encoding: "utf8" })
  .filter((file) => /\.tsx?$/.test(file))
  .map((file) => file.replaceAll("\\", "/"));

const features = [
  "client",
  "worker",
  "control",
  "history",
  "limits",
  "cron",
  "recovery",
  "admin",
  "tasks",
  "telemetry",
  "metrics",
  "audit",
  "forward",
];
const levelByFolder: Record<string, number> = {
  util: 0,
  hooks: 1.5,
  // Options and settings are words that every feature may use, as those of the vocabulary are.
  config: 1.6,
  db: 2,
  ...Object.fromEntries(features.map((feature) => [feature, 3])),
  runner: 4,
  testing: 6,
  cli: 7,
};

interface Import {
  readonly from: string;
  readonly target: string;
  readonly isType: boolean;
}

const imports = files.flatMap(importsOf);

test("an import goes to a lower level only, or stays in its own folder", () => {
  const wrong = imports.filter(({ from, target }) => {
    const [own, other] = [homeOf(from), homeOf(target)];
    if (isPackage(target) || own === "dashboard") return false;
    return own !== other && levelOf(from) <= levelOf(target);
  });
  expect(wrong.map(describeImport)).toEqual([]);
});

test("a feature never imports a feature", () => {
  const wrong = imports.filter(({ from, target }) => {
    const [own, other] = [homeOf(from), homeOf(target)];
    return own !== other && features.includes(own) && features.includes(other);
  });
  expect(wrong.map(describeImport)).toEqual([]);
});

test("on its way from the finished task to the statement, the settle goes down: no file knows one above it", () => {
  const way = [
    ...["run/dispatcher", "run/ends", "settle/settler", "settle/settle-lane", "settle/batch-writer"],
    ...["settle/queue-releases", "settle/lanes", "settle/kept-writes", "settle/settle-and-claim"],
    ...["settle/sure-writes", "settle/unwritten", "settle/ended-job"],
  ].map((name) => `worker/${name}.ts`);
  expect(way.filter((file) => !files.includes(file))).toEqual([]);
  const wrong = imports.filter(({ from, target }) => {
    const [own, other] = [way.indexOf(from), way.indexOf(target)];
    return other >= 0 && other < own;
  });
  expect(wrong.map(describeImport)).toEqual([]);
});

test("only db/ touches pg at run time", () => {
  const wrong = imports.filter(
    ({ from, target, isType }) => /^pg($|\/)/.test(target) && !isType && homeOf(from) !== "db",
  );
  expect(wrong.map(describeImport)).toEqual([]);
});

test("util/ needs Node only", () => {
  const wrong = imports.filter(
    ({ from, target }) => homeOf(from) === "util" && isPackage(target) && !target.startsWith("node:"),
  );
  expect(wrong.map(describeImport)).toEqual([]);
});

test("only sqlstate.ts names error codes of PostgreSQL", () => {
  const classes = "0[0-9A-Z]|2[0-8BDF]|3[489BDF]|4[024]|5[034578]|F0|HV|P0|XX";
  const code = new RegExp(`["'\`(|^](?:${classes})[0-9A-Z]{3}["'\`)|$]|/\\^\\(?(?:${classes})[)|/]`);
  const text = (file: string): string => withoutComments(readFileSync(join(source, file), "utf8"));
  expect(text("db/sqlstate.ts")).toMatch(code);
  expect(files.filter((file) => file !== "db/sqlstate.ts" && code.test(text(file)))).toEqual([]);
});

test("the dashboard knows only the public API and its contract", () => {
  const wrong = imports.filter(({ from, target }) => {
    if (homeOf(from) !== "dashboard" || isPackage(target)) return false;
    if (target === "dashboard/contract.ts" || from === "dashboard/contract.ts") return false;
    if (from.startsWith("dashboard/contract/")) return !target.startsWith("dashboard/contract/");
    if (from.startsWith("dashboard/app/")) return !target.startsWith("dashboard/app/");
    return target !== "index.ts" && !target.startsWith("dashboard/server/");
  });
  expect(wrong.map(describeImport)).toEqual([]);
});

test("testing/ is made of the public API, as users' own helpers would be", () => {
  const wrong = imports.filter(
    ({ from, target }) =>
      homeOf(from) === "testing" && !isPackage(target) && target !== "index.ts" && homeOf(target) !== "testing",
  );
  expect(wrong.map(describeImport)).toEqual([]);
});

test("the command line is made of the public API, and of what finds its config and database", () => {
  const further = ["config/file.ts", "connection-string.ts", "metrics/index.ts", "tasks/import-file.ts", "version.ts"];
  const wrong = imports.filter(({ from, target }) => {
    if (homeOf(from) !== "cli" || isPackage(target)) return false;
    if (target === "index.ts" || homeOf(target) === "cli" || homeOf(target) === "util") return false;
    return !further.includes(target) && !target.startsWith("dashboard/server/");
  });
  expect(wrong.map(describeImport)).toEqual([]);
});

test("index.ts only re-exports", () => {
  const text = withoutComments(readFileSync(join(source, "index.ts"), "utf8"));
  const rest = text.replace(/export\s+(type\s+)?(\*(\s+as\s+\w+)?|\{[^}]*\})\s+from\s+"[^"]+";/g, "").trim();
  expect(rest).toBe("");
});

test("nothing is called utils, lib, common, manager or types", () => {
  const banned = new Set(["utils", "lib", "common", "manager", "types"]);
  const names = files.flatMap((file) =>
    file
      .replace(/\.tsx?$/, "")
      .split("/")
      .map((part) => [file, part] as const),
  );
  expect(names.filter(([, part]) => banned.has(part) || /(^|-)manager$/.test(part))).toEqual([]);
});

test("what is stopped was started: a class with one of both has the shape of a service", () => {
  const classes = files
    .filter((file) => !file.startsWith("dashboard/app/"))
    .flatMap((file) =>
      withoutComments(readFileSync(join(source, file), "utf8"))
        .split(/^(?=(?:export )?class )/m)
        .slice(1),
    );
  const wrong = classes.filter(
    (text) => /^ {2}(async )?stop\(/m.test(text) && !/^[^{]* implements Service\b/.test(text),
  );
  expect(wrong.map((text) => text.split("{")[0])).toEqual([]);
});

test("every folder has its level in the rules", () => {
  const folders = new Set(files.filter((file) => file.includes("/")).map(homeOf));
  expect([...folders].filter((folder) => !(folder in levelByFolder) && folder !== "dashboard")).toEqual([]);
});

test("migrations are numbered without a gap, and each function is made in one of those that are not released", () => {
  const folder = join(source, "db/migrations");
  const names = readdirSync(folder).sort();
  expect(names.map((name) => Number.parseInt(name, 10))).toEqual(names.map((_, index) => index + 1));
  const released = releasedCode();
  const filesByFunction = new Map<string, string[]>();
  for (const name of names.filter((each) => !released.includes(each))) {
    const text = readFileSync(join(folder, name), "utf8");
    for (const [, made = ""] of text.matchAll(/^create (?:or replace )?function\s+([\w.]+)/gim))
      filesByFunction.set(made, [...(filesByFunction.get(made) ?? []), name]);
  }
  if (released === "") expect(filesByFunction.size).toBeGreaterThan(100);
  expect([...filesByFunction].filter(([, all]) => all.length > 1)).toEqual([]);
});

test("no file is longer than 320 lines: what grows beyond holds more than one idea", () => {
  const lengths = files.map((file) => [file, readFileSync(join(source, file), "utf8").split("\n").length - 1] as const);
  expect(lengths.filter(([, lines]) => lines > 320)).toEqual([]);
});

test("file names are kebab-case", () => {
  expect(files.filter((file) => !/^[a-z0-9]+(-[a-z0-9]+)*(\.d)?\.tsx?$/.test(basename(file)))).toEqual([]);
});

/** The library as it was released so far, which contains its migrations and their names. */
function releasedCode(): string {
  const folder = join(root, "test/upgrade/released");
  const all = existsSync(folder) ? readdirSync(folder, { recursive: true, encoding: "utf8" }) : [];
  return all
    .filter((file) => file.endsWith(".js"))
    .map((file) => readFileSync(join(folder, file), "utf8"))
    .join("\n");
}

/** The folder directly below src/; the vocabulary has none, and the public API stands for itself. */
function homeOf(file: string): string {
  const [first = ""] = file.split("/");
  return file.includes("/") || file === "index.ts" ? first : "";
}

function levelOf(file: string): number {
  if (file === "index.ts") return 5;
  const home = homeOf(file);
  return home === "" ? 1 : (levelByFolder[home] ?? Number.NaN);
}

function isPackage(target: string): boolean {
  return !/\.tsx?$/.test(target);
}

function importsOf(file: string): Import[] {
  const text = withoutComments(readFileSync(join(source, file), "utf8"));
  const statements = text.matchAll(/(?:^|\n)\s*(?:import|export)\s+(type\s+)?([^;"']*?from\s+)?["']([^"']+)["']/g);
  const dynamic = text.matchAll(/\bimport\(\s*["']([^"']+)["']\s*\)/g);
  return [
    ...[...statements].map(([, type, names, target = ""]) => ({
      from: file,
      target: resolveTarget(file, target),
      isType: type !== undefined || hasOnlyTypes(names ?? ""),
    })),
    ...[...dynamic].map(([, target = ""]) => ({ from: file, target: resolveTarget(file, target), isType: false })),
  ];
}

function hasOnlyTypes(names: string): boolean {
  const listed = /^\{([\s\S]*)\}\s*from/.exec(names.trim())?.[1];
  if (listed === undefined) return false;
  const parts = listed.split(",").map((part) => part.trim());
  return parts.every((part) => part === "" || part.startsWith("type "));
}

function resolveTarget(file: string, target: string): string {
  if (!target.startsWith(".")) return target;
  return relative(source, join(source, dirname(file), target)).replaceAll("\\", "/");
}

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/(^|\s)\/\/.*$/gm, "$1");
}

function describeImport({ from, target }: Import): string {
  return `${from} must not import ${target}`;
}
