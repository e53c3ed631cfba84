import type { RecoveryOptions } from "../../src/config/recovery-options.ts";
import { type OriginalVersion, originalEntry } from "../compat/original.ts";
import { builtLibrary } from "./built-library.ts";
import { startProcess, type TestProcess } from "./process.ts";
import { until } from "./wait.ts";

/** Options of `run`, and what only the process knows. */
export interface WorkerProcessOptions {
  readonly connectionString?: string;
  readonly concurrency?: number;
  readonly pollInterval?: number;
  readonly forbiddenFlags?: readonly string[];
  readonly noPreparedStatements?: boolean;
  readonly useNotifications?: boolean;
  readonly listenConnectionString?: string;
  readonly minResetLockedInterval?: number;
  readonly maxResetLockedInterval?: number;
  readonly crontab?: string;
  readonly shutdownGracePeriod?: number;
  readonly taskOptions?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly recovery?: boolean | RecoveryOptions;
  readonly preset?: { readonly worker: { readonly localQueue: { readonly size: number } } };
  readonly history?: "outcomes" | "full";
  /** The names of events to tell of. */
  readonly tells?: readonly string[];
  /** Make a pool from these options and hand it in, as a user would. */
  readonly pool?: Readonly<Record<string, unknown>>;
  readonly useNodeTime?: boolean;
  readonly limits?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /** Its wall clock can be moved; `fast`: it starts an hour fast. */
  readonly clock?: "right" | "fast";
}

/** One run of a job: from when to when, by a clock that all processes share. */
export interface Run {
  readonly id: string;
  readonly task: string;
  readonly queueId: number | null;
  /** The pool that it was claimed by. */
  readonly pool: string;
  readonly startedAt: number;
  readonly endedAt: number;
}

interface Start {
  readonly id: string;
  readonly at: number;
  readonly pool: string;
  readonly attempt: number;
}

/** A worker in a real process of its own. */
export interface WorkerProcess {
  readonly pid: number;
  /** The jobs that it has started, in order. */
  started(): string[];
  /** The same with their times, and as what they were claimed. */
  starts(): readonly Start[];
  /** The runs that have ended, well or not. */
  runs(): Run[];
  /** The jobs of those runs. */
  finished(): string[];
  /** The jobs that it holds until told to let go. */
  holds(): string[];
  /** Why the abort signal of a job fired. */
  aborted(id: string): string | undefined;
  /** The jobs that were no longer its own when they ended. */
  lost(): string[];
  /** The names of the events that it was to tell of, in their order. */
  told(): string[];
  /** What it logged, except about single jobs. */
  logged(pattern?: RegExp): string[];
  /** Everything that it told, as lines of JSON. */
  output(): string;
  /** Waits until a line of these matches. */
  says: TestProcess["says"];
  /** Lets held jobs end. */
  release(): void;
  /** Moves its wall clock, back if below zero. */
  moveClock(ms: number): void;
  /** Stops it gracefully; gives how the process ended. */
  stop(): Promise<number | NodeJS.Signals>;
  kill(signal: NodeJS.Signals): void;
  readonly ended: TestProcess["ended"];
  /** True as long as nothing has ended it. */
  isAlive(): boolean;
}

interface Fact {
  readonly started?: Start;
  readonly run?: Run;
  readonly aborted?: { readonly id: string; readonly reason: string };
  readonly holds?: string;
  readonly lost?: string;
  readonly event?: string;
  readonly level?: string;
  readonly message?: string;
  readonly isOfJob?: boolean;
}

/** Starts a worker of ours and waits until it runs. */
export function startWorker(options: WorkerProcessOptions, library = builtLibrary()): Promise<WorkerProcess> {
  return start({ ...options, library, isOriginal: false });
}

/** The same with Graphile Worker. */
export function startOriginal(
  options: WorkerProcessOptions,
  version: OriginalVersion = "0.18",
): Promise<WorkerProcess> {
  return start({ ...options, library: originalEntry(version), isOriginal: true });
}

async function start({
  clock,
  ...options
}: WorkerProcessOptions & { library: string; isOriginal: boolean }): Promise<WorkerProcess> {
  const child = startProcess("worker-process.mjs", [JSON.stringify(options)], {
    ...(clock && { NODE_OPTIONS: `--import ${new URL("shifted-clock.mjs", import.meta.url).href}` }),
    ...(clock === "fast" && { CLOCK_STARTS_FAST: "1" }),
  });
  let isAlive = true;
  void child.ended.then(() => {
    isAlive = false;
  });
  const facts: Fact[] = [];
  let read = 0;
  const readFacts = (): Fact[] => {
    const output = child.output();
    const end = output.lastIndexOf("\n") + 1;
    for (const line of output.slice(read, end).split("\n")) {
      if (line.startsWith("{")) facts.push(JSON.parse(line) as Fact);
    }
    read = end;
    return facts;
  };
  await child.says(/^\{"ready":true\}$/m);
  return {
    pid: child.pid,
    started: () => readFacts().flatMap(({ started }) => started?.id ?? []),
    starts: () => readFacts().flatMap(({ started }) => started ?? []),
    runs: () => readFacts().flatMap(({ run }) => run ?? []),
    finished: () => readFacts().flatMap(({ run }) => run?.id ?? []),
    holds: () => readFacts().flatMap(({ holds }) => holds ?? []),
    aborted: (id) => readFacts().find(({ aborted }) => aborted?.id === id)?.aborted?.reason,
    lost: () => readFacts().flatMap(({ lost }) => lost ?? []),
    told: () => readFacts().flatMap(({ event }) => event ?? []),
    logged: (pattern = /./) =>
      readFacts().flatMap(({ level, message, isOfJob }) =>
        message && !isOfJob && pattern.test(message) ? [`${level}: ${message}`] : [],
      ),
    output: () => child.output(),
    says: (pattern) => child.says(pattern),
    release: () => child.send("release"),
    moveClock: (ms) => child.send(`clock ${ms}`),
    stop: () => {
      child.send("stop");
      return until(() => !isAlive, { what: `the worker ends; it said\n${child.output().slice(-2_000)}` }).then(
        () => child.ended,
      );
    },
    kill: (signal) => child.kill(signal),
    ended: child.ended,
    isAlive: () => isAlive,
  };
}
