import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type pg from "pg";
import { expect, onTestFinished } from "vitest";
import type { RecoveryOptions } from "../../src/config/recovery-options.ts";
import { sleep } from "../../src/util/sleep.ts";
import { builtLibrary } from "../support/built-library.ts";
import { testPool } from "../support/database.ts";
import { dice } from "../support/dice.ts";
import { startProcess, type TestProcess } from "../support/process.ts";
import { until } from "../support/wait.ts";
import { type Blow, type Entry, judge, now, readLedger, type Verdict } from "./ledger.ts";

/** Quick enough for a short run, slow enough for a busy machine. */
export const recovery = {
  heartbeatInterval: 300,
  sweepInterval: 500,
  sweepThreshold: 4_000,
  recoveryDelay: 0,
  crashGrace: 1_000,
} satisfies RecoveryOptions;

/** What the run may do to a worker. What it does is noted as the excuse of the worker's jobs. */
export interface ChaosWorker {
  readonly pid: number;
  output(): string;
  /** SIGKILL, until the process is gone. */
  kill(): Promise<void>;
  /** SIGSTOP; gives the way back. */
  freeze(): () => void;
  /** Sets its wall clock, forwards or back. */
  shiftClock(ms: number): void;
  /** Stops it gracefully, and expects that it can be. */
  stop(): Promise<void>;
  readonly ended: TestProcess["ended"];
}

/** Kinds of jobs; `odd` throws its nth odd value in its first attempts, `exit` kills its worker. */
export interface JobKind {
  readonly ms?: number;
  readonly odd?: number;
  readonly exit?: boolean;
  /** The job's queue, or null. */
  readonly queue?: string | null;
  readonly maxAttempts?: number;
}

/** The odd value that takes most room. */
export const longError = 0;

export interface Verdicts extends Verdict {
  /** Rows that are locked, or wait, although nothing is left to do. */
  readonly stuck: string[];
}

export const nothing: Verdicts = { lost: [], doubled: [], overlapping: [], overtaking: [], stuck: [] };

/** A seeded run against one database: its jobs, its workers, and the ledger by which it is judged. */
export class Arena {
  readonly pool: pg.Pool;
  readonly url: string;
  readonly #file: string;
  readonly #roll: () => number;
  readonly #workers = new Set<ChaosWorker>();
  readonly #outputs: (() => string)[] = [];
  readonly #blows: Blow[] = [];
  readonly #queueByJob = new Map<string, string | null>();
  #replacing: Promise<unknown> = Promise.resolve();

  /** `url` is where the run adds and asks, beside all trouble. */
  constructor(url: string, seed: number) {
    this.url = url;
    this.pool = testPool(url, 3, { connectionTimeoutMillis: 5_000 });
    this.#roll = dice(seed);
    const folder = mkdtempSync(join(tmpdir(), "hathi-ledger-"));
    this.#file = join(folder, "ledger");
    writeFileSync(this.#file, "");
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  }

  /** A number from 0 up to, and without, this one. */
  any(count: number): number {
    return Math.floor(this.#roll() * count);
  }

  pick<T>(list: readonly T[]): T {
    return list[this.any(list.length)]!;
  }

  entries(): Entry[] {
    return readLedger(this.#file);
  }

  count(event: Entry["event"]): number {
    return this.entries().filter((entry) => entry.event === event).length;
  }

  /** Starts a worker in a process of its own. */
  async start(options: Readonly<Record<string, unknown>> = {}): Promise<ChaosWorker> {
    const script = fileURLToPath(new URL("worker.mjs", import.meta.url));
    const defaults = { connectionString: this.url, concurrency: 4, pollInterval: 500, recovery };
    const given = { ...defaults, ...options, library: builtLibrary(), ledger: this.#file };
    const clock = new URL("../support/shifted-clock.mjs", import.meta.url).href;
    const child = startProcess(script, [JSON.stringify(given)], { NODE_OPTIONS: `--import ${clock}` });
    await child.says(/^ready$/m);
    this.#outputs.push(() => `${child.pid}:\n${child.output()}`);
    const worker: ChaosWorker = {
      pid: child.pid,
      output: child.output,
      ended: child.ended,
      kill: async () => {
        this.#workers.delete(worker);
        this.#blows.push({ pid: child.pid, from: now(), to: Infinity });
        child.kill("SIGKILL");
        await child.ended;
      },
      freeze: () => {
        const blow: Blow = { pid: child.pid, from: now(), to: Infinity };
        this.#blows.push(blow);
        child.kill("SIGSTOP");
        return () => {
          blow.backAt = now();
          child.kill("SIGCONT");
          blow.to = now();
        };
      },
      shiftClock: (ms) => child.send(`clock ${ms}`),
      stop: async () => {
        this.#workers.delete(worker);
        child.send("stop");
        const isEnding = child.ended.then((end) => ({ end }));
        const ending = await Promise.race([isEnding, sleep(30_000).then(() => undefined)]);
        expect(ending, child.output()).toEqual({ end: 0 });
      },
    };
    this.#workers.add(worker);
    return worker;
  }

  /** From now until the way back is called, jobs of this process (null: of all) may run again. */
  excuse(pid: number | null): () => void {
    const blow: Blow = { pid, from: now(), to: Infinity };
    this.#blows.push(blow);
    return () => {
      blow.to = now();
    };
  }

  /** Keeps this many workers running: one that ends by itself is replaced, and what it ran is excused. Gives the number of deaths. */
  async keep(count: number): Promise<() => number> {
    let deaths = 0;
    const startOne = async (): Promise<void> => {
      const worker = await this.start();
      void worker.ended.then(() => {
        // One that was stopped is no longer among them.
        if (!this.#workers.delete(worker)) return;
        const last = this.entries().findLast(({ pid }) => pid === worker.pid);
        this.#blows.push({ pid: worker.pid, from: last?.at ?? now(), to: Infinity });
        deaths++;
        this.#replacing = Promise.all([this.#replacing, startOne()]);
      });
    };
    await Promise.all(Array.from({ length: count }, startOne));
    return () => deaths;
  }

  /** Adds jobs; each must end well once the server has confirmed it, unless it is to kill its worker. Gives their ids. */
  async add(kinds: readonly JobKind[], priority = 0): Promise<string[]> {
    const specs = kinds.map(({ queue = null, maxAttempts = 25, ...payload }) => ({
      identifier: "work",
      payload,
      queue_name: queue,
      max_attempts: maxAttempts,
      priority,
    }));
    // By their ordinality: the order of a set is nobody's promise.
    const { rows } = await this.pool.query<{ id: string }>(
      `select id from graphile_worker.add_jobs(array(
         select json_populate_record(null::graphile_worker.job_spec, spec)
         from json_array_elements($1) with ordinality as list (spec, nth) order by nth)) order by id`,
      [JSON.stringify(specs)],
    );
    for (const [index, { id }] of rows.entries()) {
      if (!kinds[index]!.exit) this.#queueByJob.set(id, kinds[index]!.queue ?? null);
    }
    return rows.map(({ id }) => id);
  }

  /** A job that something else added must end well, too; its place in line is not checked. */
  want(id: string): void {
    this.#queueByJob.set(id, null);
  }

  /** A job that was removed, replaced or ended by hand need not end well any more. */
  release(id: string): void {
    this.#queueByJob.delete(id);
  }

  /** A mixture of short jobs: three in four in one of six queues or none, by the dice. */
  addMixture(count: number): Promise<string[]> {
    return this.add(
      Array.from({ length: count }, () => ({
        ms: this.any(4) === 0 ? 20 + this.any(80) : this.any(10),
        queue: this.any(2) ? `queue ${this.any(6)}` : null,
      })),
    );
  }

  /** Asks until the server answers. */
  ask<Row extends pg.QueryResultRow>(text: string): Promise<Row[]> {
    return until(
      async () => {
        const answer = await this.pool.query<Row>(text).catch(() => null);
        return answer?.rows;
      },
      { what: `the server answers ${text}`, withinMs: 60_000 },
    );
  }

  rest(ms: number): Promise<void> {
    return sleep(ms);
  }

  /** Waits until nothing is left to do, stops the workers, and judges. */
  async verdict(withinMs = 60_000): Promise<Verdicts> {
    const waiting = "select id from graphile_worker._private_jobs where attempts < max_attempts";
    await until(async () => (await this.ask(waiting)).length === 0, { withinMs }).catch(() => undefined);
    // Queues of workers that died are freed by those that are left.
    await until(async () => (await this.#stuck()).length === 0).catch(() => undefined);
    await this.#replacing;
    await Promise.all([...this.#workers].map((worker) => worker.stop()));
    const stuck = await this.#stuck();
    const verdict = { ...judge(this.entries(), this.#queueByJob, this.#blows), stuck };
    // Without what the workers said, a failure on another machine could not be understood.
    if (Object.values(verdict).some((faults) => faults.length > 0)) for (const say of this.#outputs) console.log(say());
    return verdict;
  }

  async #stuck(): Promise<string[]> {
    const rows = await this.ask<{ what: string }>(`
      select format('job %s: attempt %s of %s, locked by %s: %s', id, attempts, max_attempts, locked_by, left(last_error, 200)) as what
      from graphile_worker._private_jobs where attempts < max_attempts or locked_at is not null
      union all
      select format('queue %s, locked by %s', queue_name, locked_by)
      from graphile_worker._private_job_queues where locked_at is not null`);
    return rows.map(({ what }) => what);
  }
}
