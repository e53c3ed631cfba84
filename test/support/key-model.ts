/** What a job is to somebody who adds and removes by key; times are minutes from a fixed moment. */
export interface ModelJob {
  task: string;
  queue: string | null;
  payload: unknown;
  runAt: number;
  attempts: number;
  maxAttempts: number;
  lastError: string | null;
  key: string | null;
  /** Hours since it was locked, or null. */
  lockedFor: number | null;
  revision: number;
}

export interface AddSpec {
  readonly task: string;
  readonly queue: string | null;
  readonly payload: unknown;
  readonly runAt: number;
  readonly maxAttempts: number;
  readonly key: string | null;
}

export type Command =
  | { readonly kind: "add"; readonly spec: AddSpec; readonly mode: "replace" | "preserve_run_at" | "unsafe_dedupe" }
  | { readonly kind: "addMany"; readonly specs: readonly AddSpec[]; readonly preserve: boolean }
  | { readonly kind: "remove"; readonly key: string }
  /** The rest acts on the nth job of those it can act on. */
  | { readonly kind: "claim"; readonly nth: number; readonly lockedFor: number }
  | { readonly kind: "fail" | "complete" | "return"; readonly nth: number }
  | { readonly kind: "giveUp" | "finish"; readonly nth: number }
  | { readonly kind: "reschedule"; readonly nth: number; readonly runAt: number; readonly attempts: number };

const isAvailable = (job: ModelJob): boolean => job.lockedFor === null && job.attempts < job.maxAttempts;
const isFreeToChange = (job: ModelJob): boolean => job.lockedFor === null || job.lockedFor > 4;

/** The whole of what keys promise, in a page: a list of jobs in the order in which they were made. */
export class KeyModel {
  readonly jobs: ModelJob[] = [];

  /** The job that a command will act on. */
  target(command: Command): ModelJob | undefined {
    if (!("nth" in command)) return undefined;
    const fits = command.kind === "claim" ? isAvailable : actsOnLocked(command.kind) ? isLocked : () => true;
    const fitting = this.jobs.filter(fits);
    return fitting[command.nth % fitting.length];
  }

  apply(command: Command): void {
    if (command.kind === "add") this.#add(command.spec, command.mode);
    else if (command.kind === "addMany") {
      for (const spec of command.specs) this.#add(spec, command.preserve ? "preserve_run_at" : "replace");
    } else if (command.kind === "remove") this.#remove(command.key);
    else {
      const job = this.target(command);
      if (job) this.#act(command, job);
    }
  }

  #add(spec: AddSpec, mode: "replace" | "preserve_run_at" | "unsafe_dedupe"): void {
    const known = spec.key === null ? undefined : this.jobs.find(({ key }) => key === spec.key);
    if (!known) this.#insert(spec);
    else if (mode === "unsafe_dedupe") known.revision++;
    else if (isAvailable(known)) replace(known, spec, mode);
    else {
      retire(known);
      this.#insert(spec);
    }
  }

  #insert(spec: AddSpec): void {
    this.jobs.push({ ...spec, attempts: 0, lastError: null, lockedFor: null, revision: 0 });
  }

  #remove(key: string): void {
    const job = this.jobs.find((candidate) => candidate.key === key);
    if (!job) return;
    if (isFreeToChange(job)) this.#delete(job);
    else retire(job);
  }

  #delete(job: ModelJob): void {
    this.jobs.splice(this.jobs.indexOf(job), 1);
  }

  #act(command: Extract<Command, { nth: number }>, job: ModelJob): void {
    switch (command.kind) {
      case "claim":
        job.attempts++;
        job.lockedFor = command.lockedFor;
        return;
      case "fail":
        job.lastError = "oops";
        job.lockedFor = null;
        return;
      case "return":
        job.attempts = Math.max(0, job.attempts - 1);
        job.lockedFor = null;
        return;
      case "complete":
        this.#delete(job);
        return;
      case "finish":
        if (isFreeToChange(job)) this.#delete(job);
        return;
      case "giveUp":
        if (isFreeToChange(job)) Object.assign(job, { attempts: job.maxAttempts, lastError: "enough" });
        return;
      case "reschedule":
        if (isFreeToChange(job)) Object.assign(job, { runAt: command.runAt, attempts: command.attempts });
    }
  }
}

function isLocked(job: ModelJob): boolean {
  return job.lockedFor !== null;
}

function actsOnLocked(kind: Command["kind"]): boolean {
  return kind === "fail" || kind === "complete" || kind === "return";
}

/** A job that cannot be changed any more gives up its key and its further attempts. */
function retire(job: ModelJob): void {
  job.key = null;
  job.attempts = job.maxAttempts;
}

function replace(known: ModelJob, spec: AddSpec, mode: "replace" | "preserve_run_at"): void {
  const isAppended = Array.isArray(known.payload) && Array.isArray(spec.payload);
  Object.assign(known, spec, {
    payload: isAppended ? [...(known.payload as unknown[]), ...(spec.payload as unknown[])] : spec.payload,
    runAt: mode === "preserve_run_at" && known.attempts === 0 ? known.runAt : spec.runAt,
    attempts: 0,
    lastError: null,
    revision: known.revision + 1,
  });
}
