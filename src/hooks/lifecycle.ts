import { JobSkippedError, toError } from "../errors.ts";
import type { TaskSpec } from "../job.ts";
import type { Logger } from "../logger.ts";
import { sleep } from "../util/sleep.ts";
import type { HookContext, HookName, ObserverName } from "./contexts.ts";
import type { HookLists } from "./registry.ts";
import { type RecoveryDecision, readChange, readRecovery, readVerdict, type Verdict } from "./results.ts";

/** What the caller has to say; `context` is added on the way. */
export type HookDetails<Name extends HookName> = Omit<HookContext<Name>, "context">;

type AnyHook<Name extends HookName> = (context: HookContext<Name>) => unknown;

/** A job on its way into the database. */
export interface RequestedJob {
  readonly identifier: string;
  readonly payload: unknown;
  readonly spec: TaskSpec;
}

/** How long a worker that ends waits for its last hook, and a recovery for an answer. */
const defaultPatienceMs = 5_000;
const goOn: Verdict = { kind: "continue" };

/** Calls the hooks that were registered: observers without waiting, interceptors in order until one gives a final answer. */
export class Lifecycle {
  readonly #lists: HookLists;
  readonly #logger: Logger;
  readonly #context: GraphileWorker.Context;
  readonly #patienceMs: number;
  readonly #reported = new Set<unknown>();

  constructor(
    lists: HookLists,
    logger: Logger,
    context: GraphileWorker.Context = {},
    patienceMs: number = defaultPatienceMs,
  ) {
    this.#lists = lists;
    this.#logger = logger;
    this.#context = context;
    this.#patienceMs = patienceMs;
  }

  /** True if a hook is registered: lets hot paths skip the call. */
  has(...names: HookName[]): boolean {
    return names.some((name) => this.#lists[name] !== undefined);
  }

  observe<Name extends ObserverName>(name: Name, details: HookDetails<Name>): void {
    for (const hook of this.#hooks(name)) void this.#call(name, hook, details);
  }

  /** Waits for observers as long as is reasonable: for the one report after which the process may be gone. */
  async observeLast<Name extends ObserverName>(name: Name, details: HookDetails<Name>): Promise<void> {
    const calls = this.#hooks(name).map((hook) => this.#call(name, hook, details));
    if (calls.length > 0) await this.#withPatience(name, Promise.all(calls));
  }

  /** May the job run, and does its end count? A hook that throws fails the job. */
  async ask<Name extends "beforeJobRun" | "afterJobRun">(name: Name, details: HookDetails<Name>): Promise<Verdict> {
    try {
      for (const hook of this.#hooks(name)) {
        const verdict = readVerdict(name, await hook(this.#complete(details)));
        if (verdict) return verdict;
      }
      return goOn;
    } catch (thrown) {
      return { kind: "fail", error: toError(thrown) };
    }
  }

  /** Gives the job as the hooks want it added; rejects if it is not to be added. */
  async askSchedule(job: RequestedJob): Promise<RequestedJob> {
    let wanted = job;
    for (const hook of this.#hooks("beforeJobSchedule")) {
      const answer = await hook(this.#complete<"beforeJobSchedule">(wanted));
      const change = readChange(answer);
      if (change) {
        const spec = { ...wanted.spec, ...change.spec } as TaskSpec;
        wanted = { ...wanted, spec, ...("payload" in change && { payload: change.payload }) };
        continue;
      }
      const verdict = readVerdict("beforeJobSchedule", answer);
      if (verdict?.kind === "fail") throw verdict.error;
      if (verdict?.kind === "skip") throw new JobSkippedError(wanted.identifier);
    }
    return wanted;
  }

  /** What becomes of an interrupted job. Never rejects, and never takes long: without a usable answer, it is the default. */
  async askRecovery(details: HookDetails<"jobRecovery">): Promise<RecoveryDecision> {
    for (const hook of this.#hooks("jobRecovery")) {
      const decide = async (context: HookContext<"jobRecovery">): Promise<RecoveryDecision | undefined> =>
        readRecovery(await hook(context));
      const answer = this.#call("jobRecovery", decide, details, hook);
      const decision = await this.#withPatience("jobRecovery", answer);
      if (decision) return decision;
    }
    return "default";
  }

  #hooks<Name extends HookName>(name: Name): readonly AnyHook<Name>[] {
    return (this.#lists[name] ?? []) as readonly AnyHook<Name>[];
  }

  #complete<Name extends HookName>(details: HookDetails<Name>): HookContext<Name> {
    return { ...details, context: this.#context } as HookContext<Name>;
  }

  /** Never rejects: what a hook throws is logged once for each hook. */
  async #call<Name extends HookName, Answer>(
    name: Name,
    hook: (context: HookContext<Name>) => Answer,
    details: HookDetails<Name>,
    kind: unknown = hook,
  ): Promise<Awaited<Answer> | undefined> {
    try {
      return await hook(this.#complete(details));
    } catch (thrown) {
      this.#report(name, kind, `failed: ${toError(thrown).message}`, thrown);
      return undefined;
    }
  }

  async #withPatience<T>(name: HookName, answer: Promise<T>): Promise<T | undefined> {
    const timer = new AbortController();
    const late = sleep(this.#patienceMs, timer.signal).then(() => {
      if (!timer.signal.aborted)
        this.#report(name, name, `took longer than ${this.#patienceMs / 1000} s; going on without it`);
      return undefined;
    });
    const first = await Promise.race([answer, late]);
    timer.abort();
    return first;
  }

  #report(name: HookName, kind: unknown, what: string, error?: unknown): void {
    const text = `A hook '${name}' ${what}. This is logged once; jobs are not affected.`;
    if (this.#reported.has(kind)) this.#logger.debug(text, { error });
    else this.#logger.error(text, { error });
    this.#reported.add(kind);
  }
}
