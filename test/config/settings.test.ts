import { describe, expect, test } from "vitest";
import { forPreset } from "../../src/config/option.ts";
import { resolveSettings } from "../../src/config/settings.ts";
import { ConfigError } from "../../src/errors.ts";
import { allOptions } from "../../src/runner/runner-options.ts";

describe("settings", () => {
  test("every gap is filled with a default", () => {
    expect(resolveSettings({}, "/app")).toEqual({
      connectionString: undefined,
      schema: "graphile_worker",
      maxPoolSize: 10,
      concurrentJobs: 1,
      pollInterval: 2_000,
      preparedStatements: true,
      taskDirectory: "/app/tasks",
      crontabFile: "/app/crontab",
      fileExtensions: [".js", ".cjs", ".mjs", ".ts", ".mts"],
      gracefulShutdownAbortTimeout: 5_000,
      useNodeTime: false,
      minResetLockedInterval: 480_000,
      maxResetLockedInterval: 600_000,
      getQueueNameBatchDelay: 50,
      localQueue: { size: -1, ttl: 300_000, refetchDelay: undefined },
      completeJobBatchDelay: -1,
      failJobBatchDelay: -1,
      shutdownGracePeriod: undefined,
      interruptedJobRetryDelay: 30_000,
      useNotifications: true,
      listenConnectionString: undefined,
      acceptedFlags: undefined,
      timeZone: "UTC",
      logPayloads: false,
      recovery: false,
      context: undefined,
      hooks: undefined,
      history: "off",
      retention: {},
      redact: [],
    });
  });

  test("zero and false are values, undefined is none", () => {
    const settings = resolveSettings({
      completeJobBatchDelay: 0,
      interruptedJobRetryDelay: 0,
      shutdownGracePeriod: 0,
      useNotifications: false,
      schema: undefined as unknown as string,
    });
    expect(settings).toMatchObject({
      completeJobBatchDelay: 0,
      interruptedJobRetryDelay: 0,
      shutdownGracePeriod: 0,
      useNotifications: false,
      schema: "graphile_worker",
    });
  });

  test.each([
    ["a number as a string", { concurrentJobs: "3", pollInterval: "500" }, { concurrentJobs: 3, pollInterval: 500 }],
    ["an abort that never comes", { gracefulShutdownAbortTimeout: Number.POSITIVE_INFINITY }, {}],
    ["an extension without its dot", { fileExtensions: ["js", ".ts"] }, { fileExtensions: [".js", ".ts"] }],
    [
      "a refetch delay that no job ends",
      { localQueue: { size: 5, refetchDelay: { durationMs: 1, maxAbortThreshold: Number.POSITIVE_INFINITY } } },
      {
        localQueue: {
          size: 5,
          ttl: 300_000,
          refetchDelay: { durationMs: 1, threshold: 0, maxAbortThreshold: Number.POSITIVE_INFINITY },
        },
      },
    ],
  ])("%s is accepted, as Graphile Worker does", (_, options, expected) => {
    const settings = resolveSettings(options as GraphileConfig.WorkerOptions);
    expect(settings).toMatchObject({ ...options, ...expected });
  });

  test("null means that an option is not given", () => {
    const names = Object.keys(forPreset(allOptions));
    const nothing = Object.fromEntries(names.map((name) => [name, null])) as GraphileConfig.WorkerOptions;
    expect(resolveSettings(nothing, "/app")).toEqual(resolveSettings({}, "/app"));
  });

  test("nobody can change them afterwards", () => {
    expect(Object.isFrozen(resolveSettings({}))).toBe(true);
  });

  test("the local queue's gaps are filled from its size", () => {
    const { localQueue } = resolveSettings({ localQueue: { size: 20, refetchDelay: { durationMs: 100 } } });
    expect(localQueue).toEqual({
      size: 20,
      ttl: 300_000,
      refetchDelay: { durationMs: 100, threshold: 0, maxAbortThreshold: 100 },
    });
  });

  test("a local queue that is off has no delay that could be wrong", () => {
    const { localQueue } = resolveSettings({ localQueue: { size: -1, refetchDelay: { durationMs: 1e6 } } });
    expect(localQueue).toEqual({ size: -1, ttl: 300_000, refetchDelay: undefined });
  });

  test.each([
    [{ concurrentJobs: 0 }, "'concurrentJobs' must be a whole number from 1 up, got 0."],
    [{ concurrentJobs: 1e9 }, "'concurrentJobs' must be at most 100000, got 1000000000."],
    [{ concurrentJobs: 1.5 }, "'concurrentJobs' must be a whole number from 1 up, got 1.5."],
    [{ maxPoolSize: "ten" }, "'maxPoolSize' must be a whole number from 1 up, got 'ten'."],
    [{ maxPoolSize: "" }, "'maxPoolSize' must be a whole number from 1 up, got ''."],
    [{ maxPoolSize: "1.5" }, "'maxPoolSize' must be a whole number from 1 up, got '1.5'."],
    [{ pollInterval: Number.NaN }, "'pollInterval' must be a number of milliseconds from 1 up, got NaN."],
    [{ schema: "" }, "'schema' must be a name of 1 to 63 bytes, got ''."],
    [{ schema: "é".repeat(32) }, "'schema' must be a name of 1 to 63 bytes"],
    [{ preparedStatements: "no" }, "'preparedStatements' must be true or false, got 'no'."],
    [{ minResetLockedInterval: 0 }, "'minResetLockedInterval' must be a number of milliseconds from 1 up, got 0."],
    [
      { minResetLockedInterval: 10, maxResetLockedInterval: 5 },
      "Invalid values for minResetLockedInterval (10)/maxResetLockedInterval (5): the second must not be less than the first.",
    ],
    [{ maxResetLockedInterval: Number.POSITIVE_INFINITY }, "'maxResetLockedInterval' must be a number of milliseconds"],
    [{ timeZone: "Europe/Hathi" }, "'timeZone' must be a time zone such as 'Europe/Berlin', got 'Europe/Hathi'."],
    [{ acceptedFlags: "gpu" }, "'acceptedFlags' must be an array of strings, got 'gpu'."],
    [{ fileExtensions: [""] }, "'fileExtensions' must be an array of file extensions such as '.js'"],
    [{ shutdownGracePeriod: -1 }, "'shutdownGracePeriod' must be a number of milliseconds from 0 up, got -1."],
    [{ localQueue: 5 }, "'localQueue' must be an object, got 5."],
    [
      { localQueue: { size: 5, ttl: 0 } },
      "'localQueue.ttl' must be a number of milliseconds from 1 up, or Infinity, got 0.",
    ],
    [
      { pollInterval: 1_000, localQueue: { size: 5, refetchDelay: { durationMs: 2_000 } } },
      "Invalid configuration; 'preset.worker.localQueue.refetchDelay.durationMs' (2000) must not be larger than 'preset.worker.pollInterval' (1000)",
    ],
    [{ recovery: { maxCrashes: 0 } }, "'recovery.maxCrashes' must be a whole number from 1 up, got 0."],
    [{ recovery: "yes" }, "'recovery' must be true, false or an object of settings, got yes."],
    [
      { recovery: { sweepThreshold: 20_000 } },
      "'recovery.sweepThreshold' (20000) must be longer than 'recovery.heartbeatInterval' (30000), or living workers would",
    ],
  ])("%o is refused", (options, message) => {
    expect(() => resolveSettings(options as GraphileConfig.WorkerOptions)).toThrow(ConfigError);
    expect(() => resolveSettings(options as GraphileConfig.WorkerOptions)).toThrow(message);
  });
});

describe("recovery settings", () => {
  const defaults = {
    heartbeatInterval: 30_000,
    sweepInterval: 60_000,
    sweepThreshold: 300_000,
    recoveryDelay: 30_000,
    resilientSweepThresholdMultiplier: 3,
    resilientJobFlags: ["infrastructure_resilient"],
    maxEventLoopBlock: 3_600_000,
    crashGrace: 5_000,
    maxCrashes: 3,
    recoveryBackoff: false,
  };

  test.each([
    ["true switches it on", { recovery: true }, defaults],
    ["an object switches it on", { recovery: { sweepInterval: 5 } }, { ...defaults, sweepInterval: 5 }],
    ["a loose setting switches it on", { sweepThreshold: 40_000 }, { ...defaults, sweepThreshold: 40_000 }],
    ["the object beats loose settings", { maxCrashes: 4, recovery: { maxCrashes: 5 } }, { ...defaults, maxCrashes: 5 }],
    ["false has the last word", { recovery: false, maxCrashes: 4 }, false],
    ["enabled: false switches it off", { recovery: { enabled: false } }, false],
    ["enabled: false beats settings", { maxCrashes: 4, recovery: { enabled: false, sweepInterval: 5 } }, false],
    ["enabled: true switches it on", { recovery: { enabled: true } }, defaults],
  ])("%s", (_, options, expected) => {
    expect(resolveSettings(options).recovery).toEqual(expected);
  });
});
