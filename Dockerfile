# A worker in a container: mount your tasks at /worker/tasks (and a crontab, a config file and node_modules beside it, if
# you have them), and give it a database:
#   docker run --init --rm -v "$PWD/tasks:/worker/tasks" -e DATABASE_URL=postgres://… hathi
# --init (or tini, as below in the entry point) reaps what executables leave behind and hands signals on; SIGTERM drains.

FROM node:22-slim AS build
WORKDIR /build
COPY package.json package-lock.json tsconfig.json tsconfig.build.json ./
COPY scripts scripts
COPY src src
COPY packages/embedded packages/embedded
# The embedded server is for machines without a database, so it is compiled here but not taken along.
RUN npm install --ignore-scripts --no-audit --no-fund \
 && node scripts/build.mjs \
 && npm prune --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund \
 && rm -rf node_modules/@hathi

FROM node:22-slim
RUN apt-get update \
 && apt-get install --yes --no-install-recommends tini \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build /build/package.json /hathi/package.json
COPY --from=build /build/node_modules /hathi/node_modules
COPY --from=build /build/dist /hathi/dist
# The link in node_modules lets tasks and config files import the library by its name.
RUN ln -s /hathi/dist/cli/main.js /usr/local/bin/hathi \
 && ln -s /hathi/dist/cli/main.js /usr/local/bin/graphile-worker \
 && mkdir -p /worker/tasks /worker/node_modules \
 && ln -s /hathi /worker/node_modules/hathi \
 && chown -R node:node /worker
WORKDIR /worker
USER node
ENV NODE_ENV=production
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/bin/tini", "--", "/usr/local/bin/hathi"]
