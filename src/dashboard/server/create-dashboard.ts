import type { IncomingMessage, ServerResponse } from "node:http";
import { ConfigError, isSchemaMissing, makeWorkerUtils, type QueueUtils } from "../../index.ts";
import { AnswerCache } from "./answer-cache.ts";
import { BulkRuns } from "./bulk.ts";
import type { DashboardContext } from "./context.ts";
import { Indexing } from "./indexing.ts";
import { pathOf, sendResponse, toRequest } from "./node-handler.ts";
import { checkDashboardOptions, type DashboardOptions, databaseOptionsOf } from "./options.ts";
import { defaultRedact } from "./redact.ts";
import { RequestHandler } from "./request-handler.ts";
import type { OpenDashboard } from "./routes.ts";
import { Streams } from "./stream.ts";

/** A dashboard that can be mounted. */
export interface Dashboard {
  /** For servers that speak `Request` and `Response`: Hono, Next, Bun, Deno … */
  fetch(request: Request): Promise<Response>;
  /** For `node:http`, Express, Nest, Koa, Fastify's raw requests and alike. A body that was parsed before is taken from `request.body`. */
  node(request: IncomingMessage, response: ServerResponse): Promise<void>;
  /** Connects to the database now; otherwise the first request does. */
  open(): Promise<void>;
  /** Ends streams and what runs in the background, and closes the connections. May be called twice. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Makes a dashboard: a web page that shows everything about the queue, and lets people act on it who may. The database is connected to when the first request comes. */
export function createDashboard(options: DashboardOptions): Dashboard {
  checkDashboardOptions(options);
  const streams = new Streams();
  let opened: Promise<Opened> | undefined;
  let isClosed = false;
  const open = async (): Promise<Opened> => {
    if (isClosed) throw new ConfigError("The dashboard was closed.");
    opened ??= openDashboard(options, streams).catch((error: unknown) => {
      // The next request tries again.
      opened = undefined;
      throw error;
    });
    return opened;
  };
  const handler = new RequestHandler(options, async () => (await open()).dashboard);
  const close = async (): Promise<void> => {
    isClosed = true;
    streams.close();
    await (await opened?.catch(() => undefined))?.close();
  };
  return {
    fetch: (request) => handler.answer({ request, mount: undefined }),
    async node(request, response) {
      const gone = new AbortController();
      response.once("close", () => gone.abort());
      const { url, mount } = pathOf(request);
      const asked = toRequest(request, url, gone.signal);
      const answer = asked ? await handler.answer({ request: asked, mount, node: request }) : handler.refuse();
      // A browser that is gone is no error.
      await sendResponse(answer, response, request.method === "HEAD").catch(() => response.destroy());
    },
    open: async () => void (await open()),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** An open page asks for some things once a minute; each new connection would have to plan its statements again. */
const idleTimeout = 90_000;

interface Opened {
  readonly dashboard: OpenDashboard;
  close(): Promise<void>;
}

async function openDashboard(options: DashboardOptions, streams: Streams): Promise<Opened> {
  const { migrate = true, statementTimeout = 2_000 } = options;
  const utils = await makeWorkerUtils(databaseOptionsOf(options), { migrate, statementTimeout, idleTimeout });
  const cache = new AnswerCache();
  const indexing = new Indexing(utils, cache, migrate && !options.readOnly);
  try {
    const context: DashboardContext = {
      utils,
      cache,
      keepIndexed: () => indexing.keepUp(),
      title: options.title ?? null,
      redact: options.redact ?? defaultRedact,
      tasks: options.tasks ?? {},
      cronItems: options.cronItems ?? [],
      timeZone: options.timeZone,
      isReadOnly: options.readOnly ?? false,
      database: await nameDatabase(utils),
    };
    const { logger } = utils;
    const bulkRuns = new BulkRuns(context, (error) => logger.error("An action on many jobs failed.", { error }));
    let closing: Promise<void> | undefined;
    const close = async (): Promise<void> => {
      await Promise.all([bulkRuns.close(), indexing.close()]);
      await utils.release();
    };
    return { dashboard: { context, bulkRuns, streams }, close: () => (closing ??= close()) };
  } catch (error) {
    await utils.release();
    throw error;
  }
}

/** Also tells whether the schema is new enough. */
async function nameDatabase(utils: QueueUtils): Promise<string> {
  await utils.listActions({}, { limit: 1 }).catch((error: unknown) => {
    if (!isSchemaMissing(error)) throw error;
    throw new ConfigError(
      `The schema '${utils.schema}' is not installed or not up to date: run 'hathi migrate', or start a worker.`,
    );
  });
  return utils.withPgClient(async (client) => {
    const { rows } = await client.query<{ name: string }>("select pg_catalog.current_database() as name");
    return rows[0]?.name ?? "";
  });
}
