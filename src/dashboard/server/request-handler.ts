import type { IncomingMessage } from "node:http";
import { ConfigError, consoleLogFactory, Logger } from "../../index.ts";
import { type Address, parseAddress } from "./address.ts";
import { answer, answerJson, answerRefusal, redirect } from "./answers.ts";
import { Assets } from "./assets.ts";
import { type Caller, type Gate, makeGate } from "./authenticate.ts";
import { readJson, readText } from "./body.ts";
import type { DashboardOptions } from "./options.ts";
import { badRequest, Refusal, refusalOf } from "./refusal.ts";
import { answerCall, findRoute, type OpenDashboard } from "./routes.ts";
import { checkHeader, checkSite } from "./same-site.ts";
import { signInPage, signInStyle } from "./sign-in-page.ts";

export interface Incoming {
  readonly request: Request;
  /** The part of the path that the host app has cut off, if it says so. */
  readonly mount: string | undefined;
  readonly node?: IncomingMessage;
}

/** Where every request comes in: it is let through, sent to sign in, or turned away, and every answer is safe to show. */
export class RequestHandler {
  readonly #options: DashboardOptions;
  readonly #open: () => Promise<OpenDashboard>;
  readonly #gate: Gate;
  readonly #assets = new Assets();
  readonly #logger: Logger;

  constructor(options: DashboardOptions, open: () => Promise<OpenDashboard>) {
    this.#options = options;
    this.#open = open;
    this.#gate = makeGate(options);
    this.#logger = options.logger ?? new Logger(consoleLogFactory);
  }

  async answer(incoming: Incoming): Promise<Response> {
    const address = parseAddress(incoming.request.url, incoming.mount ?? this.#options.basePath ?? "");
    try {
      return await this.#answer(incoming, address);
    } catch (error) {
      return this.#explain(error, incoming, address);
    }
  }

  /** For what is no request that a browser would send. */
  refuse(): Response {
    return answerRefusal(badRequest("This is not a request that can be answered."));
  }

  async #answer(incoming: Incoming, address: Address): Promise<Response> {
    const { request } = incoming;
    const { method } = request;
    const { path } = address;
    if (method !== "GET" && method !== "HEAD") checkSite(request);
    if (path === "sign-in.css" && this.#gate.hasForm) return answer(signInStyle, "text/css; charset=utf-8");
    const token = address.query.token;
    if (path === "" && method === "GET" && token !== undefined && this.#gate.hasForm) {
      // The browser keeps the session for the folder that answers: without a slash at the end, that would be the one above.
      if (address.base !== "./") return redirect(`${address.base}?token=${encodeURIComponent(token)}`, []);
      return this.#signIn(token, incoming, address.here, address);
    }
    // Beside the pages, and so is the sign-out: the browser keeps the session for the folder that answers.
    if (path === "sign-in" && method === "POST" && this.#gate.hasForm) {
      const given = new URLSearchParams(await readForm(incoming)).get("token") ?? "";
      return this.#signIn(given, incoming, "./", address);
    }
    const caller = await this.#gate.admit(incoming);
    if (caller instanceof Response) return caller;
    if (path.startsWith("api/")) return this.#answerApi(incoming, address, caller);
    if (path === "sign-out" && method === "POST") {
      checkHeader(request);
      return answerJson({}, { cookies: this.#gate.signOut() });
    }
    if (method !== "GET" && method !== "HEAD")
      throw new Refusal("wrong-method", "Pages are read with GET.", { allow: "GET, HEAD" });
    return (await this.#assets.file(path, request)) ?? this.#page(address);
  }

  #page({ path, base }: Address): Response {
    if (isPage(path)) return this.#assets.page(base);
    throw new Refusal("not-found", "There is nothing at this address.");
  }

  async #answerApi({ request, node }: Incoming, { path, query }: Address, caller: Caller): Promise<Response> {
    const { method } = request;
    const name = path.slice("api/".length);
    const isChange = method !== "GET" && method !== "HEAD";
    if (isChange) checkHeader(request);
    findRoute(method, name);
    const body = isChange ? await readJson(request, node) : undefined;
    return answerCall(await this.#open(), method, name, { query, caller, body });
  }

  /** Only a token that is ours leads on, and then it is gone from the address. */
  #signIn(token: string, { request }: Incoming, to: string, { base }: Address): Response {
    const isSecure = new URL(request.url).protocol === "https:" || request.headers.get("x-forwarded-proto") === "https";
    const cookie = this.#gate.signIn(token, isSecure);
    return cookie === undefined ? signInPage(base, true) : redirect(to, [cookie]);
  }

  #explain(error: unknown, { request }: Incoming, { path, base }: Address): Response {
    const refusal = refusalOf(error);
    if (!refusal) {
      // Only the log tells what it was.
      this.#logger.error(`The dashboard could not answer ${request.method} ${path.slice(0, 200)}.`, { error });
      const isSetup = error instanceof ConfigError;
      return answerRefusal(
        new Refusal("failed", isSetup ? error.message : "Something went wrong here; the server's log tells more."),
      );
    }
    if (refusal.code === "sign-in" && this.#gate.hasForm && request.method === "GET" && !path.startsWith("api/")) {
      return signInPage(base, false);
    }
    return answerRefusal(refusal);
  }
}

const pages = ["", "jobs", "errors", "tasks", "queues", "cron", "workers", "limits", "history", "audit"];

function isPage(path: string): boolean {
  const [first = "", ...rest] = path.split("/");
  const hasOne = first === "jobs" || first === "errors";
  if (first === "tasks") return true;
  return pages.includes(first) && (rest.length === 0 || (rest.length === 1 && (hasOne || rest[0] === "")));
}

async function readForm({ request, node }: Incoming): Promise<string> {
  const { body } = (node ?? {}) as { body?: unknown };
  if (typeof body === "object" && body !== null) return new URLSearchParams(body as Record<string, string>).toString();
  return typeof body === "string" ? body : readText(request);
}
