/** Times are minutes from a fixed moment. */
export interface ModelJob {
  readonly task: string;
  payload: number;
  runAt: number;
  attempts: number;
  maxAttempts: number;
  isLocked: boolean;
  /** A newer job took its place while it ran, or it was cancelled. */
  isRetired: boolean;
  isCancelled: boolean;
  queue: string | null;
}

export type ModelGuard =
  | { readonly kind: "debounce"; readonly key: string; readonly delay: number; readonly maxWait: number | null }
  | { readonly kind: "throttle"; readonly key: string; readonly period: number }
  | { readonly kind: "singleton"; readonly key: string; readonly onConflict: "skip" | "replace" | "cancelRunning" };

export interface ModelAdd {
  readonly task: string;
  readonly payload: number;
  readonly maxAttempts: number;
  readonly queue: string | null;
  readonly guard: ModelGuard;
}

interface Held {
  job: ModelJob;
  before: ModelJob | undefined;
  since: number;
  until: number;
}

export const isWaiting = (job: ModelJob): boolean => !job.isLocked && job.attempts < job.maxAttempts;

/** What guards promise, in a page. */
export class GuardModel {
  readonly jobs: ModelJob[] = [];
  now = 0;
  readonly #held = new Map<string, Held>();

  /** Gives the job that was made or changed, or `skipped`. */
  add(add: ModelAdd): "skipped" | ModelJob {
    const { guard } = add;
    const held = this.#held.get(`${add.task} ${guard.kind} ${guard.key}`);
    const isThere = (job: ModelJob | undefined): job is ModelJob => job !== undefined && this.jobs.includes(job);
    const waiting = isThere(held?.job) && isWaiting(held.job) ? held.job : undefined;
    const running = [held?.job, held?.before].filter(isThere).find(({ isLocked }) => isLocked);
    switch (guard.kind) {
      case "throttle": {
        if (held && this.now < Math.max(held.until, held.since + guard.period)) return "skipped";
        return this.#write(add, undefined, undefined, { since: this.now, until: this.now + guard.period });
      }
      case "debounce": {
        const burst = waiting?.attempts === 0 ? held! : { since: this.now, until: Infinity };
        const until = Math.min(burst.until, burst.since + (guard.maxWait ?? Infinity));
        if (running) retire(running);
        const runAt = Math.min(this.now + guard.delay, until);
        return this.#write({ ...add, runAt }, waiting, running, { since: burst.since, until });
      }
      case "singleton": {
        if (guard.onConflict === "skip") {
          if (waiting || running) return "skipped";
          return this.#write(add, undefined, undefined, { since: this.now, until: Infinity });
        }
        if (running) retire(running);
        if (running && guard.onConflict === "cancelRunning") running.isCancelled = true;
        const queue = running?.queue ?? add.queue ?? `singleton:${add.task}:${guard.key}`;
        return this.#write({ ...add, queue }, waiting, running, { since: this.now, until: Infinity });
      }
    }
  }

  #write(
    { guard, runAt = this.now, ...add }: ModelAdd & { readonly runAt?: number },
    waiting: ModelJob | undefined,
    before: ModelJob | undefined,
    burst: { readonly since: number; readonly until: number },
  ): ModelJob {
    const fresh = { ...add, runAt, attempts: 0, isLocked: false, isRetired: false, isCancelled: false };
    const job: ModelJob = waiting ? Object.assign(waiting, fresh) : fresh;
    if (!waiting) this.jobs.push(job);
    this.#held.set(`${add.task} ${guard.kind} ${guard.key}`, { job, before, ...burst });
    return job;
  }

  /** Forgets what is over: a longer period that is given later does not reach back behind this. */
  tidy(): void {
    for (const [name, { until }] of this.#held)
      if (name.includes(" throttle ") && until <= this.now) this.#held.delete(name);
  }

  remove(job: ModelJob): void {
    this.jobs.splice(this.jobs.indexOf(job), 1);
  }
}

function retire(job: ModelJob): void {
  job.attempts = job.maxAttempts;
  job.isRetired = true;
}
