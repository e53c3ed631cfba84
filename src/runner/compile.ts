import { EventEmitter } from "node:events";
import { AsyncHooks, Middleware, orderedApply, resolvePreset } from "graphile-config";
import { checkCombinations } from "../config/check-combinations.ts";
import { findUnknownKeys, forPreset, givenOf, toPreset } from "../config/option.ts";
import type { SharedOptions } from "../config/options.ts";
import { makeWorkerPreset } from "../config/preset.ts";
import { resolveSettings, type Settings } from "../config/settings.ts";
import { BREAKING_MIGRATIONS, MAX_MIGRATION } from "../db/adopt.ts";
import { quoteIdentifier } from "../db/statement.ts";
import { makeEmit } from "../emit.ts";
import { errorTitle } from "../error-text.ts";
import { ConfigError } from "../errors.ts";
import type { Emit, WorkerEvents } from "../events.ts";
import { Lifecycle } from "../hooks/lifecycle.ts";
import { type HookLists, makeHooks } from "../hooks/registry.ts";
import type { AddJobFunction, AddJobsFunction } from "../job.ts";
import { defaultLogger, guardLogger, type Logger, type LogScope } from "../logger.ts";
import type { WorkerPluginBaseContext, WorkerPluginContext } from "../plugin-context.ts";
import type { EnhancedWithPgClient, JobHelpers } from "../task.ts";
import { version } from "../version.ts";
import { allOptions } from "./runner-options.ts";
import { builtInPlugins } from "./worker-preset.ts";

/** Options made ready: presets resolved, plugins registered, values checked. */
export interface CompiledSharedOptions<T extends object = SharedOptions> extends WorkerPluginContext {
  readonly settings: Settings;
  /** What hooks and events are handed. */
  readonly ctx: WorkerPluginContext;
  readonly emit: Emit;
  /** The user's logger, as everything here uses it: it never throws. */
  readonly safeLogger: Logger;
  /** The hooks along a job's way: those of plugins, then those of the option. */
  readonly lifecycle: Lifecycle;
  /** The options as they were given. */
  readonly _rawOptions: T;
}

type ResolvedWorkerPreset = WorkerPluginBaseContext["resolvedPreset"];

/** What Graphile Worker's workers share. Nothing here takes one; code that names the type goes on compiling. */
export interface WorkerShared {
  compiledSharedOptions: CompiledSharedOptions;
  query: JobHelpers["query"];
  addJob: AddJobFunction;
  addJobs: AddJobsFunction;
  withPgClient: EnhancedWithPgClient;
}

const compiledByOptions = new WeakMap<object, CompiledSharedOptions<object>>();

/** Makes options ready; once for each options object, so that plugins start once however often it is used. */
export function compileSharedOptions<T extends SharedOptions>(options: T, scope?: LogScope): CompiledSharedOptions<T> {
  if (typeof options !== "object" || options === null) {
    // Not with its value: a connection string has a password in it.
    const got = options === null ? "null" : typeof options;
    throw new ConfigError(`The options must be an object such as { connectionString: "postgres://…" }, got ${got}.`);
  }
  let compiled = compiledByOptions.get(options) as CompiledSharedOptions<T> | undefined;
  if (!compiled) {
    compiled = compile(options);
    compiledByOptions.set(options, compiled);
  }
  return scope ? { ...compiled, logger: compiled.logger.scope(scope) } : compiled;
}

function compile<T extends SharedOptions>(options: T): CompiledSharedOptions<T> {
  checkCombinations(options);
  const given = resolveWorkerPreset(options);
  const settings = resolveSettings(given.worker);
  const worker = asUnderstood(given.worker, settings);
  const resolvedPreset = { ...given, worker };
  const base: WorkerPluginBaseContext = {
    version,
    resolvedPreset,
    workerSchema: settings.schema,
    escapedWorkerSchema: quoteIdentifier(settings.schema),
    events: worker.events ?? (new EventEmitter() as unknown as WorkerEvents),
    logger: worker.logger ?? defaultLogger,
  };
  const logger = guardLogger(base.logger);
  for (const sentence of [...findUnknown(options, resolvedPreset), ...findDoubtful(settings)]) logger.warn(sentence);

  return initialise(base, settings, options, logger);
}

/** Options over the preset over the defaults. An option that is null hides neither. */
function resolveWorkerPreset(options: SharedOptions): ResolvedWorkerPreset {
  const base = makeWorkerPreset(builtInPlugins);
  const resolved = resolvePreset({
    extends: [base, { extends: options.preset ? [options.preset] : [], worker: toPreset(allOptions, options) }],
  });
  const worker = { ...base.worker, ...givenOf(resolved.worker ?? {}) } as ResolvedWorkerPreset["worker"];
  return { ...resolved, worker };
}

/** Plugins read `preset.worker`: they find numbers there, not the strings that say them, and extensions with their dots. */
function asUnderstood<Worker extends GraphileConfig.WorkerOptions>(worker: Worker, settings: Settings): Worker {
  const understood = Object.entries(settings).filter(
    ([name, value]) => name in worker && (typeof value === "number" || Array.isArray(value)),
  );
  return { ...worker, ...Object.fromEntries(understood) };
}

/** One sentence for each option that does not exist. Only a plugin can own other keys of `preset.worker`; keys of groups are ours. */
function findUnknown(options: object, { worker, plugins }: ResolvedWorkerPreset): string[] {
  const onlyNearMisses = plugins.some((plugin) => !builtInPlugins.includes(plugin));
  const direct = findUnknownKeys(allOptions, options);
  const own = new Set(Object.keys(options));
  const inPreset = Object.fromEntries(Object.entries(worker).filter(([name]) => !own.has(name)));
  return [
    ...direct,
    ...findUnknownKeys(forPreset(allOptions), inPreset, { where: " in preset.worker", onlyNearMisses }),
  ];
}

/** What works, but hardly as it was meant. */
function findDoubtful({ localQueue, concurrentJobs }: Settings): string[] {
  if (localQueue.size < 1 || localQueue.size >= concurrentJobs) return [];
  return [
    `'localQueue.size' (${localQueue.size}) is less than 'concurrentJobs' (${concurrentJobs}), so some workers would stay idle: ` +
      "raise it.",
  ];
}

function initialise<T extends SharedOptions>(
  base: WorkerPluginBaseContext,
  settings: Settings,
  options: T,
  logger: Logger,
): CompiledSharedOptions<T> {
  const middleware = new Middleware<GraphileConfig.WorkerMiddleware>();
  orderedApply<Required<NonNullable<NonNullable<GraphileConfig.Plugin["worker"]>["middleware"]>>>(
    base.resolvedPreset.plugins,
    (plugin) => plugin.worker?.middleware,
    (name, handler) => middleware.register(name, handler as never),
  );

  const compiled = middleware.runSync("init", { ctx: base }, () => {
    const hooks = new AsyncHooks<GraphileConfig.WorkerHooks>();
    // One object before and after, as in the original: whoever got the first has the second.
    const ctx: WorkerPluginContext = Object.assign(base, {
      hooks,
      middleware,
      maxMigrationNumber: MAX_MIGRATION,
      breakingMigrationNumbers: BREAKING_MIGRATIONS,
      _rawOptions: options,
    });
    registerHooks(ctx);
    const emit = makeEmit(base.events, ctx, (error, name) => {
      logger.error(`A listener of '${name}' failed; this changes nothing else: ${errorTitle(error)}`, { error });
    });
    const lifecycle = new Lifecycle(collectHooks(base, settings), logger, settings.context);
    runInitHooks(ctx, logger);
    return { ...ctx, ctx, safeLogger: logger, settings, emit, lifecycle, _rawOptions: options };
  });
  if (typeof compiled !== "object" || compiled === null) {
    throw new ConfigError("An 'init' middleware returned nothing: it must return what its next() gave.");
  }
  return compiled as CompiledSharedOptions<T>;
}

function collectHooks({ resolvedPreset }: WorkerPluginBaseContext, { hooks: own, metrics }: Settings): HookLists {
  const hooks = makeHooks();
  for (const { worker } of resolvedPreset.plugins ?? []) if (worker?.lifecycle) hooks.use(worker.lifecycle);
  if (own) hooks.use(own);
  if (metrics) hooks.use(metrics.hooks);
  return hooks.take();
}

function registerHooks(ctx: WorkerPluginContext): void {
  type Handler = (ctx: WorkerPluginContext, ...args: unknown[]) => unknown;
  orderedApply<Record<keyof GraphileConfig.WorkerHooks, Handler>>(
    ctx.resolvedPreset.plugins,
    (plugin) => plugin.worker?.hooks as Partial<Record<keyof GraphileConfig.WorkerHooks, Handler>> | undefined,
    (name, handler) => ctx.hooks.hook(name, ((...args: unknown[]) => handler(ctx, ...args)) as never),
  );
}

function runInitHooks({ hooks }: WorkerPluginContext, logger: Logger): void {
  const report = (error: unknown): void => {
    logger.error(`An 'init' hook of a plugin failed: ${errorTitle(error)}`, { error });
  };
  try {
    Promise.resolve(hooks.process("init")).catch(report);
  } catch (error) {
    report(error);
  }
}
