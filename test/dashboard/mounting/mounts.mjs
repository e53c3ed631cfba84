// The dashboard in each framework, as docs/dashboard.md shows it: below `/admin/hathi`, with the framework's own parser of bodies before it.
import { createServer } from "node:http";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);

/** Each starts a server on a free port and says how to stop it. */
export const mounts = {
  async "express-4"(dashboard) {
    return useExpress(require("express-4"), dashboard);
  },
  async "express-5"(dashboard) {
    return useExpress(require("express-5"), dashboard);
  },
  async "node:http"(dashboard) {
    return listen(createServer((request, response) => void dashboard.node(request, response)));
  },
  async fastify(dashboard) {
    const app = require("fastify")({ forceCloseConnections: true });
    app.register(
      async (scope) => {
        scope.addContentTypeParser("application/x-www-form-urlencoded", { parseAs: "string" }, (_request, body, done) =>
          done(null, body),
        );
        const handle = (request, reply) => {
          reply.hijack();
          return dashboard.node(Object.assign(request.raw, { body: request.body }), reply.raw);
        };
        scope.all("/", handle);
        scope.all("/*", handle);
      },
      { prefix: "/admin/hathi" },
    );
    await app.listen({ port: 0, host: "127.0.0.1" });
    return { port: app.server.address().port, stop: () => app.close() };
  },
  async hono(dashboard) {
    const { Hono } = require("hono");
    const { serve } = require("@hono/node-server");
    const app = new Hono();
    app.all("/admin/hathi", (context) => dashboard.fetch(context.req.raw));
    app.all("/admin/hathi/*", (context) => dashboard.fetch(context.req.raw));
    const server = await new Promise((resolve) => {
      const made = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }, () => resolve(made));
    });
    return stopOf(server);
  },
  async koa(dashboard) {
    const Koa = require("koa").default ?? require("koa");
    const bodyParser = require("koa-bodyparser");
    const app = new Koa();
    app.use(bodyParser());
    app.use(async (context, next) => {
      if (!context.path.startsWith("/admin/hathi")) return next();
      context.respond = false;
      await dashboard.node(Object.assign(context.req, { body: context.request.body }), context.res);
    });
    return listen(createServer(app.callback()));
  },
  async nest(dashboard) {
    require("reflect-metadata");
    const { Module } = require("@nestjs/common");
    const { NestFactory } = require("@nestjs/core");
    class AppModule {}
    Module({})(AppModule);
    const app = await NestFactory.create(AppModule, { logger: false });
    app.use("/admin/hathi", dashboard.node);
    await app.listen(0, "127.0.0.1");
    return { port: app.getHttpServer().address().port, stop: () => app.close() };
  },
};

function useExpress(express, dashboard) {
  const app = express();
  app.use(express.json());
  app.use("/admin/hathi", dashboard.node);
  return listen(createServer(app));
}

async function listen(server) {
  await new Promise((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  return stopOf(server);
}

function stopOf(server) {
  return {
    port: server.address().port,
    stop: () =>
      new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      }),
  };
}
