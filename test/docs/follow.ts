import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect } from "vitest";
import { until } from "../support/wait.ts";
import type { Block } from "./pages.ts";
import { type Command, type ShellOptions, type } from "./shell.ts";

/** What was typed, and what came of it. */
interface Follower {
  readonly outputs: string[];
  /** The worker, once it was started. */
  readonly worker: () => Command;
}

/**
 * Types the commands of the blocks and writes their files, in order. The worker is left running, as in a terminal of its own.
 * The packages are not published yet, so they are named by their files.
 */
export async function follow(
  blocks: readonly Block[],
  tarballs: Readonly<Record<string, string>>,
  options: ShellOptions,
): Promise<Follower> {
  const outputs: string[] = [];
  let worker: Command | undefined;
  for (const block of blocks) {
    if (block.file !== undefined) {
      const path = join(options.cwd, block.file);
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, block.text);
      // With --watch the worker takes it up by itself.
      if (block.file.startsWith("tasks/")) await worker?.says(/send-email/);
      continue;
    }
    if (block.language !== "sh") continue;
    for (const line of block.text.trim().split("\n")) {
      if (/^npx hathi( --watch)?$/.test(line)) {
        worker = type(line, options);
        await worker.says(/looking for jobs/);
      } else {
        const command = type(nameFiles(line, tarballs), options);
        const code = await command.ended;
        // A recurring job may have taken the number that is asked for.
        expect([0, ...(line.includes(" why ") ? [1] : [])], `${line}:\n${command.output()}`).toContain(code);
        outputs.push(command.output());
      }
    }
  }
  return { outputs, worker: () => worker! };
}

function nameFiles(line: string, tarballs: Readonly<Record<string, string>>): string {
  if (!line.startsWith("npm install ")) return line;
  return line.replaceAll(/(?<= )(hathi|@hathi\/embedded)(?= |$)/g, (name) => tarballs[name]!);
}

/** Presses Ctrl-C and says how the command ended, once the server it kept under `dataDir` is gone as well. */
export async function stop(command: Command, dataDir: string): Promise<number | null> {
  const pid = Number.parseInt(await readFile(join(dataDir, "pgdata/postmaster.pid"), "utf8"), 10);
  command.interrupt();
  const code = await command.ended;
  await until(() => !isAlive(pid), { what: `the server in '${dataDir}' (process ${pid}) has stopped` });
  return code;
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
