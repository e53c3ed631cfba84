import { type DynamicModule, Module } from "@nestjs/common";
import { makeWorkerUtils, type RunnerOptions, type Task, type WorkerUtils } from "hathi";
import type { TaskProvider, TaskProviderClass } from "./task-provider.ts";
import { WorkerService } from "./worker.service.ts";

/** Inject it where jobs are added: `@Inject(WORKER_UTILS) private readonly utils: WorkerUtils`. */
export const WORKER_UTILS = Symbol("WorkerUtils");

export interface HathiModuleOptions {
  /** For the utils and the worker alike. */
  readonly options: RunnerOptions;
  /** Classes whose jobs run in this process. None: it only adds jobs. */
  readonly tasks?: readonly TaskProviderClass[];
  /** The modules that export what the tasks need. */
  readonly imports?: NonNullable<DynamicModule["imports"]>;
}

@Module({})
export class HathiModule {
  static forRoot({ options, tasks = [], imports = [] }: HathiModuleOptions): DynamicModule {
    const utils = { provide: WORKER_UTILS, useFactory: () => makeWorkerUtils({ ...options }) };
    const worker = {
      provide: WorkerService,
      inject: [WORKER_UTILS, ...tasks],
      useFactory: (made: WorkerUtils, ...instances: TaskProvider<unknown>[]) =>
        new WorkerService(made, options, toTaskList(instances)),
    };
    return { module: HathiModule, global: true, imports, providers: [...tasks, utils, worker], exports: [utils] };
  }
}

function toTaskList(instances: readonly TaskProvider<unknown>[]): Record<string, Task> {
  return Object.fromEntries(
    instances.map((instance): [string, Task] => [
      instance.identifier,
      (payload, helpers) => instance.run(payload, helpers),
    ]),
  );
}
