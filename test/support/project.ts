import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";
import { removeClusters } from "./clusters.ts";

/** A folder of one's own, with these files in it; removed when the test is over. */
export interface Project {
  readonly folder: string;
  path(name: string): string;
  write(name: string, text: string, options?: { executable?: boolean }): Promise<void>;
  remove(name: string): Promise<void>;
}

export async function makeProject(files: Readonly<Record<string, string>> = {}): Promise<Project> {
  const folder = await mkdtemp(join(tmpdir(), "hathi-project-"));
  onTestFinished(async () => {
    await removeClusters(folder);
    await rm(folder, { recursive: true, force: true });
  });
  const project: Project = {
    folder,
    path: (name) => join(folder, name),
    async write(name, text, { executable = false } = {}) {
      await mkdir(dirname(join(folder, name)), { recursive: true });
      await writeFile(join(folder, name), text);
      if (executable) await chmod(join(folder, name), 0o755);
    },
    remove: (name) => rm(join(folder, name)),
  };
  for (const [name, text] of Object.entries(files)) await project.write(name, text);
  return project;
}
