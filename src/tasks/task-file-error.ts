import { fileURLToPath, pathToFileURL } from "node:url";
import { HathiError, toError } from "../errors.ts";

/** A file that should hold a task, tasks or a configuration, and does not. */
export class TaskFileError extends HathiError {
  readonly code = "BAD_TASK_FILE";
  readonly file: string;

  constructor(file: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.file = file;
  }
}

/** An error that says in one sentence which file could not be loaded, where it is wrong, and what is wrong with it. */
export async function describeLoadFailure(file: string, thrown: unknown): Promise<TaskFileError> {
  const error = toError(thrown);
  const place = placeOf(error) ?? (await placeOfSyntaxError(file, error));
  const kind = error.name === "Error" || error.message.startsWith(error.name) ? "" : `${error.name}: `;
  const what = `${kind}${firstLine(error.message)}`;
  const where = place === undefined || what.includes(place) ? "" : ` (${place})`;
  return new TaskFileError(file, `Could not load '${file}': ${what}${where}`, { cause: thrown });
}

/** Messages of loaders carry a code frame or a require stack below their first line. */
function firstLine(message: string): string {
  const lines = message.split("\n").map((line) => line.trim());
  // jiti puts the place on a line of its own.
  const place = lines[1] !== undefined && /:\d+:\d+$/.test(lines[1]) ? ` at ${lines[1]}` : "";
  return `${(lines[0] ?? "").replace(/[.\s]+$/, "")}${place}`;
}

/** `file:line` of the first place in user code that the stack names. */
function placeOf(error: Error): string | undefined {
  const [head = "", ...frames] = (error.stack ?? "").split("\n");
  const decorated = /^((?:file:\/\/)?\/.+|[A-Za-z]:\\.+):(\d+)$/.exec(head);
  if (decorated) return `${toPath(decorated[1]!)}:${decorated[2]}`;
  for (const frame of frames) {
    const found = /[\s(]((?:file:\/\/)?(?:\/|[A-Za-z]:\\)[^()]*?):(\d+):\d+\)?$/.exec(frame);
    if (!found) continue;
    if (found[1]!.includes("/node_modules/") || found[1] === import.meta.url) return undefined;
    return `${toPath(found[1]!)}:${found[2]}`;
  }
  return undefined;
}

/**
 * Node tells the place of a syntax error in an ES module only to the terminal. Importing it once more in a process of its
 * own makes it print that; no code runs, since a module that cannot be parsed is never linked.
 */
async function placeOfSyntaxError(file: string, error: Error): Promise<string | undefined> {
  if (!(error instanceof SyntaxError)) return undefined;
  const { execFile } = await import("node:child_process");
  return new Promise((resolve) => {
    const script = "import(process.argv[1])";
    execFile(process.execPath, ["-e", script, pathToFileURL(file).href], { timeout: 10_000 }, (_error, _out, err) => {
      const found = /^((?:file:\/\/)?\/.+|[A-Za-z]:\\.+):(\d+)$/m.exec(err);
      resolve(found ? `${toPath(found[1]!)}:${found[2]}` : undefined);
    });
  });
}

function toPath(place: string): string {
  return place.startsWith("file://") ? fileURLToPath(place.replace(/\?.*$/, "")) : place;
}
