import { readdirSync } from "node:fs";
import { parseAst } from "rolldown/parseAst";
import { docAbove, readSource, root } from "./source.mjs";

/** Everything that the library declares at the top of a file, by name, as it is written there. The command line and the inside of the dashboard are no part of it. */
export function readDeclarations() {
  const found = new Map();
  for (const path of readdirSync(`${root}src`, { recursive: true, encoding: "utf8" })) {
    if (!path.endsWith(".ts") || path.startsWith("cli/") || /^dashboard\/(?!server\/(create|serve)-)/.test(path))
      continue;
    const text = readSource(`src/${path}`);
    const file = { text, lines: text.split("\n") };
    for (const statement of parseAst(text, { lang: "ts" }).body) {
      const exported = statement.type === "ExportNamedDeclaration";
      const declared = statement.declaration ?? statement;
      const names = declared.declarations?.map(({ id }) => id.name) ?? [declared.id?.name];
      for (const name of names.filter(Boolean)) {
        const known = found.get(name);
        // Overloads are several declarations of one name; a private helper must not hide what is exported.
        if (known && known.file === file) known.nodes.push(declared);
        else if (!known || exported) found.set(name, { name, file, nodes: [declared], doc: docOf(file, statement) });
      }
    }
  }
  return found;
}

/** The names that a file exports as values. */
export function readExportedValues(path) {
  const named = parseAst(readSource(path), { lang: "ts" }).body.filter(({ exportKind }) => exportKind === "value");
  return named
    .flatMap(({ specifiers }) => specifiers)
    .filter(({ exportKind }) => exportKind !== "type")
    .map(({ exported }) => exported.name);
}

/** The members of an interface, a class or an object, with what they inherit; each as it is called. */
export function readMembers(declarations, name) {
  const { file, nodes } = declarations.get(name);
  const [node] = nodes;
  const parents = (node.extends ?? [])
    .map(({ expression }) => expression.name)
    .filter((each) => declarations.get(each)?.nodes[0].body);
  const members = new Map(
    parents.flatMap((each) => readMembers(declarations, each).map((member) => [member.name, member])),
  );
  for (const member of node.body?.body ?? node.declarations[0].init.properties) {
    if (member.computed || !member.key || member.key.type === "PrivateIdentifier" || member.kind === "constructor")
      continue;
    const key = member.key.name;
    const doc = docOf(file, member) || members.get(key)?.doc || docOfType(declarations, member);
    if (/@(deprecated|internal)/.test(doc)) continue;
    members.set(key, { name: key, doc, signatures: signaturesOf(declarations, file, key, member) });
  }
  return [...members.values()];
}

/** How something is called: `run(options: RunnerOptions): Promise<Runner>`. One line for each overload. */
export function readSignatures(declarations, name) {
  const { file, nodes } = declarations.get(name);
  const overloads = nodes.length > 1 ? nodes.slice(0, -1) : nodes;
  return overloads.map((node) => callOf(file.text, name, node));
}

function signaturesOf(declarations, file, key, member) {
  const callable = member.value ?? (member.params ? member : undefined);
  if (callable?.params) return [callOf(file.text, key, callable)];
  if (callable?.type === "Identifier")
    return readSignatures(declarations, callable.name).map((text) => text.replace(callable.name, key));
  const type = member.typeAnnotation?.typeAnnotation;
  if (type?.type === "TSFunctionType") return [callOf(file.text, key, type)];
  const calls = callsOfType(declarations, type?.typeName?.name);
  if (calls.length > 0) return calls.map(({ text, node }) => callOf(text, key, node));
  return [`${key}: ${tidy(file.text.slice(type.start, type.end))}`];
}

/** The call signatures of a named type. */
function callsOfType(declarations, name) {
  const declared = declarations.get(name);
  const [node] = declared?.nodes ?? [];
  const text = declared?.file.text;
  if (node?.typeAnnotation?.type === "TSFunctionType") return [{ text, node: node.typeAnnotation }];
  const members = node?.body?.body ?? [];
  return members.filter(({ type }) => type === "TSCallSignatureDeclaration").map((each) => ({ text, node: each }));
}

function callOf(text, name, node) {
  const params = node.params.map((param) => paramOf(text, param)).join(", ");
  const returns = node.returnType ?? node.value?.returnType;
  return `${name}(${params}): ${tidy(textOf(text, returns))}`;
}

/** Names with their types; a type that is a puzzle of its own is left out. */
function paramOf(text, param) {
  const given = param.type === "AssignmentPattern" ? param.left : (param.argument ?? param);
  const name = `${param.type === "RestElement" ? "..." : ""}${given.type === "Identifier" ? given.name : "options"}`;
  const isOptional = given.optional || param.type === "AssignmentPattern";
  const annotation = given.typeAnnotation ?? param.typeAnnotation;
  const type = annotation ? tidy(textOf(text, annotation)) : "";
  return `${name}${isOptional ? "?" : ""}${type === "" || type.length > 60 ? "" : `: ${type}`}`;
}

function textOf(text, annotation) {
  return annotation ? text.slice(annotation.start, annotation.end).replace(/^(:|=>)\s*/, "") : "void";
}

function tidy(type) {
  return type.replace(/\s+/g, " ").replace(/ \| undefined$/, "");
}

function docOfType(declarations, member) {
  return declarations.get(member.typeAnnotation?.typeAnnotation?.typeName?.name)?.doc ?? "";
}

function docOf({ text, lines }, node) {
  const doc = docAbove(lines, text.slice(0, node.start).split("\n").length - 1);
  return doc.replace(/\{@link (\w+)\}/g, "`$1`");
}
