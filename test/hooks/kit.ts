import { onTestFinished } from "vitest";
import type { HookContext, HookName, LifecycleHooks, ObserverName } from "../../src/hooks/contexts.ts";
import { run } from "../../src/runner/run.ts";
import type { RunnerOptions } from "../../src/runner/runner-options.ts";
import { makeWorkerUtils, type QueueUtils } from "../../src/runner/worker-utils.ts";
import type { TaskList } from "../../src/task.ts";
import type { Runner } from "../../src/worker.ts";
import type { TestDatabase } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { until } from "../support/wait.ts";

/** A runner that is stopped, if it still runs, when the test is over. */
export async function startRunner(db: TestDatabase, taskList: TaskList, options: RunnerOptions = {}): Promise<Runner> {
  const runner = await run({
    connectionString: db.url,
    taskList,
    crontab: "",
    noHandleSignals: true,
    pollInterval: 200,
    logger: rememberingLogger().logger,
    ...options,
  });
  onTestFinished(() => runner.kill().catch(() => undefined));
  return runner;
}

export async function openUtils(db: TestDatabase, hooks: LifecycleHooks): Promise<QueueUtils> {
  const utils = await makeWorkerUtils({ connectionString: db.url, hooks, logger: rememberingLogger().logger });
  onTestFinished(() => utils.release());
  return utils;
}

type Call = { [Name in HookName]: readonly [Name, HookContext<Name>] }[HookName];

/** Hooks that remember what they were told. */
export interface Recorder {
  readonly hooks: LifecycleHooks;
  readonly names: () => HookName[];
  of<Name extends HookName>(name: Name): HookContext<Name>[];
  /** What the hook was told first; waits for it. */
  first<Name extends HookName>(name: Name): Promise<HookContext<Name>>;
}

export function recorder(...names: ObserverName[]): Recorder {
  const calls: Call[] = [];
  const of = <Name extends HookName>(name: Name): HookContext<Name>[] =>
    calls.filter(([called]) => called === name).map(([, context]) => context as HookContext<Name>);
  return {
    hooks: Object.fromEntries(
      names.map((name) => [name, (context: never) => void calls.push([name, context])]),
    ) as LifecycleHooks,
    names: () => calls.map(([name]) => name),
    of,
    first: (name) => until(() => of(name)[0], { what: `the hook '${name}' was called` }) as never,
  };
}
