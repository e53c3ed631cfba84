// The Next app and its worker with one command. Arguments go to `next build`: `node start.mjs --webpack`.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { openDatabase } from "../database.mjs";

const cwd = fileURLToPath(new URL(".", import.meta.url));
const next = createRequire(import.meta.url).resolve("next/dist/bin/next");
const database = await openDatabase();
const env = { ...process.env, DATABASE_URL: database.connectionString, NEXT_TELEMETRY_DISABLED: "1" };
const start = (...args) => spawn(process.execPath, args, { cwd, env, stdio: "inherit" });

const build = start(next, "build", ...process.argv.slice(2));
const [failure] = await once(build, "exit");
if (failure) process.exitCode = 1;
else await runUntilStopped([start("worker.mjs"), start(next, "start")]);
await database.stop();

/** Resolves when all have ended; a signal goes to each of them, once. */
async function runUntilStopped(children) {
  const ended = children.map((child) => once(child, "exit"));
  for (const signal of ["SIGINT", "SIGTERM"]) {
    process.once(signal, () => {
      for (const child of children) child.kill(signal);
    });
  }
  await Promise.all(ended);
}
