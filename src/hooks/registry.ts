import { inspect } from "node:util";
import { ConfigError } from "../errors.ts";
import { suggestion } from "../util/nearest.ts";
import type { HookName, LifecycleHook, LifecycleHooks } from "./contexts.ts";

/** Every hook there is; the compiler holds this list to the types. */
const hookNames = {
  workerInit: true,
  workerStart: true,
  workerShutdown: true,
  workerRecovered: true,
  pause: true,
  resume: true,
  jobFetch: true,
  jobStart: true,
  jobComplete: true,
  jobFail: true,
  jobPermanentlyFail: true,
  jobCancel: true,
  jobSnooze: true,
  jobTimeout: true,
  jobOverrun: true,
  jobInterrupted: true,
  cronTick: true,
  cronJobScheduled: true,
  localQueueInit: true,
  localQueueSetMode: true,
  localQueueGetJobsComplete: true,
  localQueueReturnJobs: true,
  localQueueRefetchDelayStart: true,
  localQueueRefetchDelayAbort: true,
  localQueueRefetchDelayExpired: true,
  beforeJobRun: true,
  afterJobRun: true,
  beforeJobSchedule: true,
  jobRecovery: true,
} satisfies Record<HookName, true>;

/** Registers several hooks that belong together. */
export interface HookPlugin {
  register(hooks: HookRegistry): void;
}

/** What the option `hooks` takes: functions by name, a registry, a plugin, or several of these. */
export type HooksInput = LifecycleHooks | HookRegistry | HookPlugin | readonly HooksInput[];

/** The hooks of one name, in the order they were registered. */
export type HookLists = { readonly [Name in HookName]?: readonly LifecycleHook<Name>[] };

/** A list of hooks for the option `hooks`; made by `makeHooks`. */
export class HookRegistry {
  readonly #lists = new Map<HookName, unknown[]>();
  #isInUse = false;

  on<Name extends HookName>(name: Name, hook: LifecycleHook<Name>): this {
    checkHook(name, hook);
    if (this.#isInUse) {
      throw new ConfigError(`A hook '${name}' came too late: register hooks before what they are for is started.`);
    }
    const list = this.#lists.get(name);
    if (list) list.push(hook);
    else this.#lists.set(name, [hook]);
    return this;
  }

  /** Adds all hooks of a plugin, of another registry, or of an object. */
  use(input: HooksInput): this {
    if (isList(input)) for (const each of input) this.use(each);
    else if (input instanceof HookRegistry) this.#addAll(input.take());
    else if ("register" in input && typeof input.register === "function") input.register(this);
    else this.#addAll(input);
    return this;
  }

  /** Gives what was registered. From now on nothing more can be, so that no hook comes too late unnoticed. */
  take(): HookLists {
    this.#isInUse = true;
    return Object.fromEntries(this.#lists);
  }

  #addAll(hooks: object): void {
    for (const [name, given] of Object.entries(hooks)) {
      if (given === undefined) continue;
      for (const hook of Array.isArray(given) ? given : [given]) this.on(name as HookName, hook);
    }
  }
}

/** Makes a registry of hooks, with those given to begin with. See [hooks](../hooks-and-plugins.md). */
export function makeHooks(initial: HooksInput = {}): HookRegistry {
  return new HookRegistry().use(initial);
}

function isList(input: HooksInput): input is readonly HooksInput[] {
  return Array.isArray(input);
}

function checkHook(name: string, hook: unknown): void {
  if (!Object.hasOwn(hookNames, name)) {
    throw new ConfigError(`There is no hook '${name}'.${suggestion(name, Object.keys(hookNames))}`);
  }
  if (typeof hook !== "function") {
    throw new ConfigError(`The hook '${name}' must be a function, or an array of functions, got ${inspect(hook)}.`);
  }
}
