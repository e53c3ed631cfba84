import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../..", import.meta.url));

export function readSource(path) {
  return readFileSync(`${root}${path}`, "utf8");
}

export function readSourceIfThere(path) {
  return existsSync(`${root}${path}`) ? readSource(path) : undefined;
}

/** An interface of a file: its own words about itself, and its members with theirs. Relies on the formatter's layout. */
export function readInterface(path, name) {
  const lines = readSource(path).split("\n");
  const start = lines.findIndex((line) => new RegExp(`^\\s*(export )?interface ${name}\\b`).test(line));
  if (start < 0) throw new Error(`There is no interface '${name}' in ${path}.`);
  const indent = /^\s*/.exec(lines[start])[0];
  const open = lines.findIndex((line, index) => index >= start && line.endsWith("{"));
  const close = lines.findIndex((line, index) => index > open && line === `${indent}}`);
  return { doc: docAbove(lines, start), members: readMembers(lines.slice(open + 1, close)) };
}

/** The names in a table of options, with the doc comment of each. Relies on the formatter's layout. */
export function readTable(path, name) {
  const lines = readSource(path).split("\n");
  const start = lines.findIndex((line) => line.replace("export ", "") === `const ${name} = {`);
  if (start < 0) throw new Error(`There is no table '${name}' in ${path}.`);
  const body = lines.slice(start + 1, lines.indexOf("};", start));
  return body.flatMap((line, index) => {
    const [, key] = /^ {2}(\w+): /.exec(line) ?? [];
    return key === undefined ? [] : [{ name: key, doc: docAbove(body, index) }];
  });
}

function readMembers(lines) {
  const members = [];
  for (let index = 0; index < lines.length; index++) {
    const [, name, optional, first] = /^\s*(?:readonly )?"?([\w:]+)"?(\??): (.*)$/.exec(lines[index]) ?? [];
    if (name === undefined) continue;
    const doc = docAbove(lines, index);
    let type = first;
    while (!isWhole(type)) type += ` ${lines[++index].trim()}`;
    members.push({
      name,
      isOptional: optional === "?",
      type: type.replace(/;$/, "").replace(/ \| undefined$/, ""),
      doc,
    });
  }
  return members;
}

function isWhole(type) {
  return type.endsWith(";") && type.split("{").length === type.split("}").length;
}

/** The doc comment that ends right above a line, as one paragraph per blank line. */
export function docAbove(lines, index) {
  let first = index - 1;
  if (!lines[first]?.trim().endsWith("*/")) return "";
  while (!lines[first].trim().startsWith("/**")) first--;
  return lines
    .slice(first, index)
    .map((line) => line.trim().replace(/^\/\*\*\s?|\s*\*\/$|^\*\s?/g, ""))
    .join("\n")
    .replace(/^\*?\s*$/gm, "")
    .trim();
}
