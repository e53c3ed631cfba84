import { join } from "node:path";

/** As Vite and Next read them: what is for this machine only comes first. */
const names = [".env.local", ".env"];

const fileByVariable = new Map<string, string>();

/** Reads the variables of a project's `.env.local` and `.env`, as Prisma and Vite do. A variable that is set already wins. */
export function loadEnvFiles(folder: string): void {
  for (const name of names) {
    const before = new Set(Object.keys(process.env));
    try {
      process.loadEnvFile(join(folder, name));
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      if (code !== "ENOENT") process.stderr.write(`Could not read '${name}': ${message}\n`);
    }
    for (const variable of Object.keys(process.env)) if (!before.has(variable)) fileByVariable.set(variable, name);
  }
}

/** Where a variable of the environment was set, for people to read. */
export function originOf(variable: string): string {
  const file = fileByVariable.get(variable);
  return file === undefined ? variable : `${variable} in ${file}`;
}
