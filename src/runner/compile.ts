import { EventEmitter } from "node:events";
import { AsyncHooks, Middleware, orderedApply, resolvePreset } from "graphile-config";
import { checkCombinations, findUnknown, toWorkerOptions } from "../config/direct-options.ts";
import type { SharedOptions } from "../config/options.ts";
import { makeWorkerPreset } from "../config/preset.ts";
import { resolveSettings, type Settings } from "../config/settings.ts";
import { BREAKING_MIGRATIONS, MAX_MIGRATION } from "../db/adopt.ts";
import { quoteIdentifier } from "../db/statement.ts";
import { ConfigError } from "../errors.ts";
import { type Emit, makeEmit, type WorkerEvents } from "../events.ts";
import { type HookLists, makeHooks } from "../hook-registry.ts";
import type { WorkerPluginBaseContext, WorkerPluginContext } from "../hooks.ts";
import { Lifecycle } from "../lifecycle-hooks.ts";
import { defaultLogger, type LogScope } from "../logger.ts";
import { version } from "../version.ts";
import { builtInPlugins } from "./worker-preset.ts";

/** Options made ready: presets resolved, plugins registered, values checked. */
export interface CompiledSharedOptions<T extends object = SharedOptions> extends WorkerPluginContext {
  readonly settings: Settings;
  /** What hooks and events are handed. */
  readonly ctx: WorkerPluginContext;
  readonly emit: Emit;
  /** The hooks along a job's way: those of plugins, then those of the option. */
  readonly lifecycle: Lifecycle;
  /** The options as they were given. */
  readonly _rawOptions: T;
}

const compiledByOptions = new WeakMap<object, CompiledSharedOptions<object>>();

/** Makes options ready; once for each options object, so that plugins start once however often it is used. */
export function compileSharedOptions<T extends SharedOptions>(options: T, scope?: LogScope): CompiledSharedOptions<T> {
  let compiled = compiledByOptions.get(options) as CompiledSharedOptions<T> | undefined;
  if (!compiled) {
    compiled = compile(options);
    compiledByOptions.set(options, compiled);
  }
  return scope ? { ...compiled, logger: compiled.logger.scope(scope) } : compiled;
}

function compile<T extends SharedOptions>(options: T): CompiledSharedOptions<T> {
  checkCombinations(options);
  const resolvedPreset = resolvePreset({
    extends: [
      makeWorkerPreset(builtInPlugins),
      { extends: options.preset ? [options.preset] : [], worker: toWorkerOptions(options) },
    ],
  });
  const worker = resolvedPreset.worker ?? {};
  const settings = resolveSettings(worker);
  const base: WorkerPluginBaseContext = {
    version,
    resolvedPreset,
    workerSchema: settings.schema,
    escapedWorkerSchema: quoteIdentifier(settings.schema),
    events: worker.events ?? (new EventEmitter() as unknown as WorkerEvents),
    logger: worker.logger ?? defaultLogger,
  };
  for (const sentence of [...findUnknown(options, worker), ...findDoubtful(settings)]) base.logger.warn(sentence);

  const compiled = initialise(base, settings, options);
  runInitHooks(compiled);
  return compiled;
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
): CompiledSharedOptions<T> {
  const middleware = new Middleware<GraphileConfig.WorkerMiddleware>();
  orderedApply<Required<NonNullable<NonNullable<GraphileConfig.Plugin["worker"]>["middleware"]>>>(
    base.resolvedPreset.plugins,
    (plugin) => plugin.worker?.middleware,
    (name, handler) => middleware.register(name, handler as never),
  );

  const compiled = middleware.runSync("init", { ctx: base }, () => {
    const hooks = new AsyncHooks<GraphileConfig.WorkerHooks>();
    orderedApply<GraphileConfig.WorkerHooks>(
      base.resolvedPreset.plugins,
      (plugin) => plugin.worker?.hooks as Partial<GraphileConfig.WorkerHooks> | undefined,
      (name, handler) => hooks.hook(name, handler as never),
    );
    const ctx: WorkerPluginContext = {
      ...base,
      hooks,
      middleware,
      maxMigrationNumber: MAX_MIGRATION,
      breakingMigrationNumbers: BREAKING_MIGRATIONS,
    };
    const emit = makeEmit(base.events, ctx, (error, name) => {
      base.logger.error(`A listener of '${name}' threw; this changes nothing else: ${String(error)}`, { error });
    });
    const lifecycle = new Lifecycle(collectHooks(base, settings), base.logger, settings.context);
    return { ...ctx, ctx, settings, emit, lifecycle, _rawOptions: options };
  });
  if (typeof compiled !== "object" || compiled === null) {
    throw new ConfigError("An 'init' middleware returned nothing: it must return what its next() gave.");
  }
  return compiled as CompiledSharedOptions<T>;
}

function collectHooks({ resolvedPreset }: WorkerPluginBaseContext, { lifecycleHooks }: Settings): HookLists {
  const hooks = makeHooks();
  for (const { worker } of resolvedPreset.plugins ?? []) if (worker?.lifecycle) hooks.use(worker.lifecycle);
  if (lifecycleHooks) hooks.use(lifecycleHooks);
  return hooks.take();
}

function runInitHooks({ hooks, ctx, logger }: CompiledSharedOptions<object>): void {
  const report = (error: unknown): void => {
    logger.error(`An 'init' hook of a plugin failed: ${String(error)}`, { error });
  };
  try {
    Promise.resolve(hooks.process("init", ctx)).catch(report);
  } catch (error) {
    report(error);
  }
}
