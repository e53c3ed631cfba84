import type { IncomingMessage } from "node:http";
import { badRequest, Refusal } from "./refusal.ts";

/** Larger bodies are refused before they are read to the end. */
const mostBytes = 256 * 1024;

const tooLarge = (): Refusal => new Refusal("too-large", `A request's body may have ${mostBytes / 1024} kB at most.`);

/** The text of a request's body. */
export async function readText(request: Request): Promise<string> {
  if (Number(request.headers.get("content-length") ?? 0) > mostBytes) throw tooLarge();
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of (request.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.byteLength;
    if (bytes > mostBytes) throw tooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** The JSON that a request carries, whether or not the host app has parsed it. */
export async function readJson(request: Request, node: IncomingMessage | undefined): Promise<unknown> {
  if (!/^application\/json\b/i.test(request.headers.get("content-type") ?? "")) {
    throw new Refusal("wrong-type", "A change needs a body of type application/json.");
  }
  const { body } = (node ?? {}) as { body?: unknown };
  const isParsed = typeof body === "object" && body !== null && !Buffer.isBuffer(body);
  const text = isParsed ? JSON.stringify(body) : await textOf(request, body);
  if (text.length > mostBytes) throw tooLarge();
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw badRequest(
      text === ""
        ? "The body is empty, or was read before: give it as 'body' of the Node request."
        : "The body is not JSON.",
    );
  }
}

async function textOf(request: Request, body: unknown): Promise<string> {
  return typeof body === "string" || Buffer.isBuffer(body) ? body.toString("utf8") : readText(request);
}
