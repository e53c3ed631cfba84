import { originalEntry } from "../compat/original.ts";
import { builtLibrary } from "./built-library.ts";
import { startProcess, type TestProcess } from "./process.ts";
import { until } from "./wait.ts";

/** Options of `run`, and what only the process knows. */
export interface WorkerProcessOptions {
  readonly connectionString?: string;
  readonly concurrency?: number;
  readonly pollInterval?: number;
  readonly noPreparedStatements?: boolean;
  readonly useNotifications?: boolean;
  readonly listenConnectionString?: string;
  readonly minResetLockedInterval?: number;
  readonly maxResetLockedInterval?: number;
  readonly crontab?: string;
  readonly shutdownGracePeriod?: number;
  /** The names of events to tell of. */
  readonly tells?: readonly string[];
  /** Make a pool from these options and hand it in, as a user would. */
  readonly pool?: Readonly<Record<string, unknown>>;
}

/** One run of a job: from when to when, by a clock that all processes share. */
export interface Run {
  readonly id: string;
  readonly queueId: number | null;
  readonly startedAt: number;
  readonly endedAt: number;
}

/** A worker in a real process of its own. */
export interface WorkerProcess {
  readonly pid: number;
  /** The runs that have ended, well or not. */
  runs(): Run[];
  /** The jobs that it holds until told to let go. */
  holds(): string[];
  /** The jobs that were no longer its own when they ended. */
  lost(): string[];
  /** The names of the events that it was to tell of, in their order. */
  told(): string[];
  /** What it logged, except about single jobs. */
  logged(pattern?: RegExp): string[];
  /** Lets held jobs end. */
  release(): void;
  /** Stops it gracefully; gives how the process ended. */
  stop(): Promise<number | NodeJS.Signals>;
  kill(signal: NodeJS.Signals): void;
  readonly ended: TestProcess["ended"];
  /** True as long as nothing has ended it. */
  isAlive(): boolean;
}

interface Fact {
  readonly runs?: Run[];
  readonly holds?: string;
  readonly lost?: string;
  readonly event?: string;
  readonly level?: string;
  readonly message?: string;
}

/** Starts a worker of ours and waits until it runs. */
export function startWorker(options: WorkerProcessOptions): Promise<WorkerProcess> {
  return start({ ...options, library: builtLibrary(), isOriginal: false });
}

/** The same with Graphile Worker 0.18. */
export function startOriginal(options: WorkerProcessOptions): Promise<WorkerProcess> {
  return start({ ...options, library: originalEntry("0.18"), isOriginal: true });
}

async function start(options: object): Promise<WorkerProcess> {
  const child = startProcess("worker-process.mjs", [JSON.stringify(options)]);
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
    runs: () => readFacts().flatMap(({ runs }) => runs ?? []),
    holds: () => readFacts().flatMap(({ holds }) => holds ?? []),
    lost: () => readFacts().flatMap(({ lost }) => lost ?? []),
    told: () => readFacts().flatMap(({ event }) => event ?? []),
    logged: (pattern = /./) =>
      readFacts().flatMap(({ level, message }) => (message && pattern.test(message) ? [`${level}: ${message}`] : [])),
    release: () => child.send("release"),
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
