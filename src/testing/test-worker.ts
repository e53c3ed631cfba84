import { execFile, spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import type { Job } from "../index.ts";
import { openRelay } from "./relay.ts";
import type { RunSource } from "./run-jobs.ts";

export interface TestWorkerOptions {
  /**
   * The program that runs your worker, and its arguments: `["node", "src/worker.js"]` or `["npx", "hathi"]`. It finds the queue in its
   * environment, as DATABASE_URL and GRAPHILE_WORKER_SCHEMA.
   */
  readonly command: readonly [string, ...string[]];
  /** More of its environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** Its working folder; that of the test, if left out. */
  readonly cwd?: string;
}

/**
 * A worker of yours in a process of its own, to which a test does what production does. `kill`, `freeze` and `cutOff` also return its
 * jobs at once, as crash recovery does after seconds or minutes: when they resolve, the jobs can run elsewhere.
 */
export interface TestWorker {
  readonly pid: number;
  /** Everything it has written so far, both streams. */
  output(): string;
  /** Waits until its output matches. */
  says(pattern: RegExp): Promise<RegExpMatchArray>;
  /** Waits until this job is claimed. */
  claimed(job: string | Pick<Job, "id">): Promise<void>;
  /** Ends the process as a crash or the kernel would (SIGKILL). */
  kill(): Promise<void>;
  /** Holds the process where it is, as a suspended machine or a long garbage collection would (SIGSTOP). */
  freeze(): Promise<void>;
  /** Lets a frozen process go on. */
  thaw(): void;
  /** Cuts it off from the database: its job goes on, and nothing that it sends arrives. */
  cutOff(): Promise<void>;
  /** Lets everything through again, and what waited first. */
  reconnect(): void;
  /** Stops it gracefully (SIGTERM); gives its exit code, or the signal that ended it. */
  stop(): Promise<number | NodeJS.Signals>;
}

const patienceMs = 30_000;

/** Starts a worker on a queue; `end` ends it, whatever has become of it. */
export async function startTestWorker(
  source: RunSource,
  databaseUrl: string,
  { command: [program, ...args], env, cwd }: TestWorkerOptions,
): Promise<TestWorker & { end(): Promise<void> }> {
  const relay = await openRelay(databaseUrl);
  const database = { DATABASE_URL: relay.url, GRAPHILE_WORKER_SCHEMA: source.options.schema };
  // A group of its own, so that what `npx` and the like start is hit as well.
  const child = spawn(program, args, { cwd, env: { ...process.env, ...database, ...env }, detached: true });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  let isOver = false;
  const over = new Promise<number | NodeJS.Signals>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => resolve(code ?? signal ?? 1));
  }).finally(() => {
    isOver = true;
    relay.close();
    process.off("exit", endAtOnce);
  });
  over.catch(() => undefined);
  const send = (signal: NodeJS.Signals): void => {
    if (isOver || child.pid === undefined) return;
    if (process.platform === "win32") child.kill(signal);
    else process.kill(-child.pid, signal);
  };
  const endAtOnce = (): void => send("SIGKILL");
  process.once("exit", endAtOnce);
  if (child.pid === undefined) await over; // which says why it could not be started
  const wait = async <T>(what: string, fact: () => T | Promise<T>): Promise<NonNullable<T>> => {
    for (let waitedMs = 0; ; waitedMs += await sleep(20, 20)) {
      const answer = await fact();
      if (answer) return answer;
      if (!isOver && waitedMs < patienceMs) continue;
      throw new Error(
        `${isOver ? "The worker ended before" : "Waited 30 s in vain until"} ${what}. It said:\n${output}`,
      );
    }
  };
  const kill = async (): Promise<void> => {
    send("SIGKILL");
    await over;
  };
  return {
    pid: child.pid ?? -1,
    output: () => output,
    says: (pattern) => wait(`it said ${String(pattern)}`, () => output.match(pattern)),
    claimed: async (job) => {
      const id = typeof job === "string" ? job : job.id;
      await wait(`job ${id} was claimed`, () => isClaimed(source, id));
    },
    kill: async () => {
      await kill();
      await returnJobs(source, child.pid);
    },
    freeze: async () => {
      send("SIGSTOP");
      await returnJobs(source, child.pid);
    },
    thaw: () => send("SIGCONT"),
    cutOff: async () => {
      relay.cutOff();
      await returnJobs(source, child.pid);
    },
    reconnect: () => relay.reconnect(),
    stop: () => {
      send("SIGCONT");
      send("SIGTERM");
      return over;
    },
    end: () => kill().catch(() => undefined),
  };
}

async function isClaimed({ utils, escapedSchema }: RunSource, id: string): Promise<boolean> {
  const { rows } = await utils.withPgClient((client) =>
    client.query<{ locked_at: Date | null }>(`select locked_at from ${escapedSchema}._private_jobs where id = $1`, [
      id,
    ]),
  );
  if (rows.length === 0) throw new Error(`There is no job ${id}: it has ended already.`);
  return rows[0]!.locked_at !== null;
}

/** Returns what a group of processes holds: everything that is not known to belong to a process outside of it. */
async function returnJobs({ utils, escapedSchema }: RunSource, group: number | undefined): Promise<void> {
  const { rows } = await utils.withPgClient((client) =>
    client.query<{ id: string; pid: string | null }>(
      `select distinct job.locked_by as id, worker.metadata ->> 'pid' as pid
       from ${escapedSchema}._private_jobs as job
       left join ${escapedSchema}._private_workers as worker on worker.id = job.locked_by
       where job.locked_by is not null`,
    ),
  );
  const owners = await Promise.all(rows.map(async ({ id, pid }) => ({ id, group: pid && (await groupOf(pid)) })));
  await utils.forceUnlockWorkers(owners.filter((owner) => !owner.group || owner.group === group).map(({ id }) => id));
}

/** The group of a process that is alive. */
async function groupOf(pid: string): Promise<number | undefined> {
  const { stdout } = await promisify(execFile)("ps", ["-o", "pgid=", "-p", pid]).catch(() => ({ stdout: "" }));
  return Number(stdout) || undefined;
}
