import { EventEmitter } from "node:events";
import { afterEach, describe, expect, test, vi } from "vitest";
import packageJson from "../../package.json" with { type: "json" };
import type { SharedOptions } from "../../src/config/options.ts";
import { ConfigError } from "../../src/errors.ts";
import type { WorkerEvents } from "../../src/events.ts";
import { Logger } from "../../src/logger.ts";
import { compileSharedOptions } from "../../src/runner/compile.ts";
import type { RunnerOptions } from "../../src/runner/runner-options.ts";
import { WorkerPreset } from "../../src/runner/worker-preset.ts";
import { version } from "../../src/version.ts";
import { rememberingLogger } from "../support/log.ts";

afterEach(() => vi.unstubAllEnvs());

describe("compiling options", () => {
  test("direct options beat the preset, which beats the defaults", () => {
    const preset: GraphileConfig.Preset = { worker: { schema: "from_preset", pollInterval: 5_000 } };
    const { settings, resolvedPreset } = compileSharedOptions({ preset, schema: "direct" });
    expect(settings).toMatchObject({ schema: "direct", pollInterval: 5_000, maxPoolSize: 10 });
    expect(resolvedPreset.worker).toMatchObject({ schema: "direct", pollInterval: 5_000, maxPoolSize: 10 });
  });

  test("the older names of options reach the preset under its names", () => {
    const { settings } = compileSharedOptions({ concurrency: 3, noPreparedStatements: true } as RunnerOptions);
    expect(settings).toMatchObject({ concurrentJobs: 3, preparedStatements: false });
  });

  test("an undefined option hides neither preset nor default", () => {
    const options = { preset: { worker: { schema: "kept" } }, schema: undefined } as unknown as SharedOptions;
    expect(compileSharedOptions(options).settings.schema).toBe("kept");
  });

  test("null hides neither environment, preset nor default", () => {
    vi.stubEnv("GRAPHILE_WORKER_SCHEMA", "env_schema");
    const nothing = {
      schema: null,
      concurrency: null,
      logger: null,
      events: null,
      maxPoolSize: null,
      useNodeTime: null,
    };
    const worker = { concurrentJobs: 4, schema: null, maxPoolSize: null } as unknown as GraphileConfig.WorkerOptions;
    const options = { ...nothing, preset: { worker } } as unknown as SharedOptions;
    const { settings, resolvedPreset, logger, events } = compileSharedOptions(options);
    expect(logger).toBeInstanceOf(Logger);
    expect(events).toBeInstanceOf(EventEmitter);
    expect(settings).toMatchObject({ schema: "env_schema", concurrentJobs: 4, maxPoolSize: 10, useNodeTime: false });
    expect(resolvedPreset.worker).toMatchObject({ schema: "env_schema", maxPoolSize: 10 });
  });

  test("a preset that starts from WorkerPreset is fine", () => {
    const preset = { extends: [WorkerPreset], worker: { concurrentJobs: 7 } };
    expect(compileSharedOptions({ preset }).settings.concurrentJobs).toBe(7);
  });

  test("the environment names database and schema when nothing else does", () => {
    vi.stubEnv("DATABASE_URL", "postgres:///from_env");
    vi.stubEnv("GRAPHILE_WORKER_SCHEMA", "env_schema");
    expect(compileSharedOptions({}).settings).toMatchObject({
      connectionString: "postgres:///from_env",
      schema: "env_schema",
    });
    expect(compileSharedOptions({ schema: "said" }).settings.schema).toBe("said");
  });

  test("plugins start once for each options object, however often it is used", () => {
    const init = vi.fn();
    const middleware = vi.fn((next: () => object) => next());
    const plugin: GraphileConfig.Plugin = { name: "P", worker: { hooks: { init }, middleware: { init: middleware } } };
    const options: SharedOptions = { preset: { plugins: [plugin] } };
    const first = compileSharedOptions(options);
    expect(compileSharedOptions(options)).toBe(first);
    expect(compileSharedOptions(options, { label: "x" }).events).toBe(first.events);
    expect(init).toHaveBeenCalledTimes(1);
    expect(init).toHaveBeenCalledWith(first.ctx);
    expect(middleware).toHaveBeenCalledTimes(1);
    compileSharedOptions({ ...options });
    expect(init).toHaveBeenCalledTimes(2);
  });

  test("an init hook that fails is logged, not obeyed", async () => {
    const { logger, lines } = rememberingLogger();
    const plugins: GraphileConfig.Plugin[] = [
      {
        name: "Throws",
        worker: {
          hooks: {
            init() {
              throw new Error("no");
            },
          },
        },
      },
    ];
    compileSharedOptions({ logger, preset: { plugins } });
    expect(lines).toEqual([{ level: "error", message: "An 'init' hook of a plugin failed: Error: no" }]);
  });

  test("an init middleware that forgets to return is an error", () => {
    const init = (() => undefined) as unknown as () => object;
    const plugins: GraphileConfig.Plugin[] = [{ name: "Forgets", worker: { middleware: { init } } }];
    expect(() => compileSharedOptions({ preset: { plugins } })).toThrow("it must return what its next() gave");
  });

  test("plugins, tests and listeners find what they look for", () => {
    const events = new EventEmitter() as unknown as WorkerEvents;
    const { logger } = rememberingLogger();
    const options: SharedOptions = { events, logger, schema: 'odd "name"' };
    const compiled = compileSharedOptions(options);
    expect(compiled).toMatchObject({
      version: packageJson.version,
      workerSchema: 'odd "name"',
      escapedWorkerSchema: '"odd ""name"""',
      maxMigrationNumber: 20,
      breakingMigrationNumbers: [1, 3, 11, 13, 14, 16, 19],
    });
    expect(compiled.events).toBe(events);
    expect(compiled.logger).toBe(logger);
    expect(compiled._rawOptions).toBe(options);
    expect(version).toBe(packageJson.version);
  });

  test("a listener that throws is logged, and the others are still told", () => {
    const { logger, lines } = rememberingLogger();
    const { events, emit } = compileSharedOptions({ logger });
    const heard = vi.fn();
    events.on("stop", () => {
      throw new Error("deaf");
    });
    events.on("stop", heard);
    emit("stop", {});
    expect(heard).toHaveBeenCalledTimes(1);
    expect(lines[0]?.message).toContain("A listener of 'stop' failed");
  });
});

describe("options that cannot work", () => {
  test.each([
    [{ tasks: {} }, "Unknown option 'tasks' is ignored. Did you mean 'taskList'?"],
    [{ pollIntervall: 5 }, "Unknown option 'pollIntervall' is ignored. Did you mean 'pollInterval'?"],
    [{ poll_interval: 5 }, "Unknown option 'poll_interval' is ignored. Did you mean 'pollInterval'?"],
    [{ zebra: 5 }, "Unknown option 'zebra' is ignored."],
    [
      { preset: { worker: { concurrentJob: 5 } } },
      "Unknown option 'concurrentJob' in preset.worker is ignored. Did you mean 'concurrentJobs'?",
    ],
    [
      { preset: { worker: { concurency: 5 } } },
      "Unknown option 'concurency' in preset.worker is ignored. Did you mean 'concurrentJobs'?",
    ],
    [{ preset: { worker: { zebra: 5 } } }, "Unknown option 'zebra' in preset.worker is ignored."],
    [{ recovery: { crashGrce: 5 } }, "Unknown option 'recovery.crashGrce' is ignored. Did you mean 'crashGrace'?"],
    [
      { preset: { worker: { recovery: { crashGrce: 5 } } } },
      "Unknown option 'recovery.crashGrce' in preset.worker is ignored. Did you mean 'crashGrace'?",
    ],
    [
      { preset: { worker: { localQueue: { size: 5, refetchDelay: { durationMs: 1, treshold: 5 } } } } },
      "Unknown option 'localQueue.refetchDelay.treshold' in preset.worker is ignored. Did you mean 'threshold'?",
    ],
  ])("%o gets a warning", (options, message) => {
    const { logger, lines } = rememberingLogger();
    compileSharedOptions({ ...options, logger } as SharedOptions);
    expect(lines).toEqual([{ level: "warning", message }]);
  });

  test("a local queue too small for the concurrency gets a warning", () => {
    const { logger, lines } = rememberingLogger();
    compileSharedOptions({ logger, preset: { worker: { concurrentJobs: 5, localQueue: { size: 4 } } } });
    expect(lines).toMatchObject([
      { level: "warning", message: expect.stringContaining("'localQueue.size' (4) is less") },
    ]);
  });

  test("a plugin's own key in a preset is nobody's mistake, but a key close to one of ours is", () => {
    const { logger, lines } = rememberingLogger();
    const worker = { myPluginSetting: 5, concurency: 5 } as GraphileConfig.WorkerOptions;
    compileSharedOptions({ logger, preset: { plugins: [{ name: "Mine" }], worker } });
    expect(lines.map(({ message }) => message)).toEqual([
      "Unknown option 'concurency' in preset.worker is ignored. Did you mean 'concurrentJobs'?",
    ]);
  });

  test.each([
    [{ taskList: {}, taskDirectory: "x" }, "Exactly one of either `taskDirectory` or `taskList` should be set"],
    [{ crontab: "# x", parsedCronItems: [] }, "`crontab` and `parsedCronItems` must not be set at the same time"],
    [{ pgPool: {}, connectionString: "x" }, "Both `pgPool` and `connectionString` are set"],
    [{ workerId: "w", concurrency: 2 }, "You must not set workerId when concurrency > 1"],
    [{ concurrency: 0 }, "'concurrentJobs' must be a whole number from 1 up, got 0."],
  ])("%o is refused", (options, message) => {
    expect(() => compileSharedOptions(options as SharedOptions)).toThrow(ConfigError);
    expect(() => compileSharedOptions(options as SharedOptions)).toThrow(message);
  });

  test("a pool and a connection string from a preset go together", () => {
    const pgPool = {} as NonNullable<SharedOptions["pgPool"]>;
    expect(() => compileSharedOptions({ pgPool, preset: { worker: { connectionString: "x" } } })).not.toThrow();
  });
});
