import { execFile } from "node:child_process";
import { cp, mkdir, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { promisify } from "node:util";

/** What a Dockerfile leads to, without a container: a folder, and what is started in it, how. */
export interface Image {
  readonly folder: string;
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly user: string;
}

/** Takes the steps of a Dockerfile of one stage, with `base` in the place of the container's root. */
export async function buildImage(
  dockerfile: string,
  { base, context, ignored }: { base: string; context: string; ignored: readonly string[] },
): Promise<Image> {
  let folder = base;
  let command: string[] = [];
  let user = "root";
  const env: Record<string, string> = {};
  const steps: Record<string, (rest: string) => unknown> = {
    FROM: (image) => image,
    WORKDIR: (path) => {
      folder = join(base, path);
      return mkdir(folder, { recursive: true });
    },
    COPY: async (rest) => {
      const paths = rest.split(" ");
      const target = join(folder, paths.pop()!);
      for (const path of paths) {
        const source = join(context, path);
        const isFolder = (await stat(source)).isDirectory();
        await cp(source, isFolder ? target : join(target, path), {
          recursive: true,
          filter: (file) => !ignored.includes(basename(file)),
        });
      }
    },
    RUN: (line) => promisify(execFile)("sh", ["-c", line], { cwd: folder, env: { ...process.env, ...env } }),
    USER: (name) => {
      user = name;
    },
    ENV: (rest) => Object.assign(env, Object.fromEntries([rest.split("=")])),
    CMD: (rest) => {
      command = JSON.parse(rest) as string[];
    },
  };
  for (const line of dockerfile.trim().split("\n")) {
    const [, name, rest] = /^([A-Z]+) (.+)$/.exec(line) ?? [];
    const step = steps[name ?? ""];
    if (!step) throw new Error(`'${line}' is no step that is known here.`);
    await step(rest!);
  }
  return { folder, command, env, user };
}
