import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { snapshotEntry } from "./snapshot.mjs";

/** A process that runs one system's worker or producer, steered by calls. */
export class WorkerProcess {
  /** How many jobs it has started, when the first of them did, and how that number grew. */
  progress = { ran: 0, firstAt: undefined };
  onProgress = () => undefined;
  #child;
  #calls = new Map();
  #lastId = 0;
  #ready;
  #exited;
  /** Why it ended, once it has. */
  failure;

  constructor(script) {
    this.#child = fork(fileURLToPath(new URL(`./workers/${script}`, import.meta.url)), {
      // The caller's DATABASE_URL or PG* must not reach a library that looks for them.
      env: { PATH: process.env.PATH, NODE_ENV: "production", HATHI_BENCH_ENTRY: snapshotEntry },
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    // A message to a process that is just dying; its exit says the rest.
    this.#child.on("error", () => undefined);
    this.#exited = new Promise((resolve) => this.#child.once("exit", resolve));
    this.#ready = new Promise((resolve, reject) => {
      this.#child.on("message", (message) => this.#receive(message, resolve));
      this.#child.once("exit", (code) => this.#fail(new Error(`${script} ended with exit code ${code}.`), reject));
    });
    this.#ready.catch(() => undefined);
  }

  get pid() {
    return this.#child.pid;
  }

  async call(command, args = {}) {
    await this.#ready;
    if (this.failure) throw this.failure;
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      this.#calls.set(id, { resolve, reject });
      this.#child.send({ id, command, args });
    });
  }

  /** Resolves when the process is gone. It gets no chance to tidy up: stop its worker first. */
  async end() {
    this.#child.kill("SIGKILL");
    await this.#exited;
  }

  #receive(message, ready) {
    if (message.ready) return ready();
    if (message.progress) {
      this.progress = message.progress;
      return this.onProgress();
    }
    const call = this.#calls.get(message.id);
    this.#calls.delete(message.id);
    if (message.error === undefined) call?.resolve(message.result);
    else call?.reject(new Error(message.error));
  }

  #fail(error, rejectReady) {
    this.failure = error;
    rejectReady(error);
    for (const { reject } of this.#calls.values()) reject(error);
    this.#calls.clear();
  }
}

/** Runs `use` with processes that are gone afterwards, whatever happens. */
export async function withProcesses(scripts, use) {
  const processes = scripts.map((script) => new WorkerProcess(script));
  try {
    return await use(processes);
  } finally {
    await Promise.all(processes.map((process) => process.end()));
  }
}
