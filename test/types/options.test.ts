import type { Pool } from "pg";
import { expectTypeOf, test } from "vitest";
import type {
  CronItem,
  ForbiddenFlagsFn,
  LocalQueueOptions,
  Logger,
  PatternCronItem,
  QueueUtils,
  RecoveryOptions,
  RefetchDelayOptions,
  RunnerOptions,
  RunOnceOptions,
  WorkerUtilsOptions,
} from "../../src/index.ts";

test("direct options have the types of their table", () => {
  expectTypeOf<RunnerOptions>().toHaveProperty("concurrency").toEqualTypeOf<number | undefined>();
  expectTypeOf<RunnerOptions>().toHaveProperty("noPreparedStatements").toEqualTypeOf<boolean | undefined>();
  expectTypeOf<RunnerOptions>().toHaveProperty("pgPool").toEqualTypeOf<Pool | undefined>();
  expectTypeOf<RunnerOptions>().toHaveProperty("logger").toEqualTypeOf<Logger | undefined>();
  expectTypeOf<RunnerOptions>()
    .toHaveProperty("recovery")
    .toEqualTypeOf<boolean | (RecoveryOptions & { enabled?: boolean | undefined }) | undefined>();
  expectTypeOf<RunnerOptions["forbiddenFlags"]>().toEqualTypeOf<null | string[] | ForbiddenFlagsFn | undefined>();
  expectTypeOf<RunOnceOptions["concurrency"]>().toEqualTypeOf<1 | undefined>();
  expectTypeOf<RecoveryOptions["resilientJobFlags"]>().toEqualTypeOf<string[] | undefined>();
  expectTypeOf<{ schema: string; concurrency: number }>().toExtend<RunnerOptions>();
  expectTypeOf<{ concurrency: string }>().not.toExtend<RunnerOptions>();
  expectTypeOf<keyof RunnerOptions>().not.toEqualTypeOf<string>();
  expectTypeOf<"concurrentJobs">().not.toExtend<keyof RunnerOptions>();
  expectTypeOf<"pollInterval">().not.toExtend<keyof WorkerUtilsOptions>();
});

test("options of a preset have the names and types they have there", () => {
  type Preset = GraphileConfig.WorkerOptions;
  expectTypeOf<Preset>().toHaveProperty("concurrentJobs").toEqualTypeOf<number | undefined>();
  expectTypeOf<Preset>().toHaveProperty("preparedStatements").toEqualTypeOf<boolean | undefined>();
  expectTypeOf<Preset>().toHaveProperty("localQueue").toEqualTypeOf<LocalQueueOptions | undefined>();
  expectTypeOf<Preset>().toHaveProperty("sweepThreshold").toEqualTypeOf<number | undefined>();
  expectTypeOf<Preset>().toHaveProperty("fileExtensions").toEqualTypeOf<string[] | undefined>();
  expectTypeOf<"concurrency" | "pgPool" | "taskList">().not.toExtend<keyof Preset>();
  expectTypeOf<LocalQueueOptions["size"]>().toEqualTypeOf<number>();
  expectTypeOf<RefetchDelayOptions["durationMs"]>().toEqualTypeOf<number>();
});

test("cron items may have the older name of a match, and ids of jobs may be numbers", () => {
  expectTypeOf<{ task: "t"; pattern: string }>().toExtend<PatternCronItem>();
  expectTypeOf<{ task: "t"; match: string }>().toExtend<CronItem>();
  for (const name of ["completeJobs", "permanentlyFailJobs", "rescheduleJobs"] as const) {
    expectTypeOf<number[]>().toExtend<Parameters<QueueUtils[typeof name]>[0]>();
    expectTypeOf<string[]>().toExtend<Parameters<QueueUtils[typeof name]>[0]>();
  }
});
