#!/usr/bin/env node
import { setTimeout } from "../util/timers.ts";
import { loadEnvFiles } from "./env-files.ts";
import { runProgram } from "./program.ts";

/** A task that leaves a timer or a socket open must not keep a stopped worker in memory. */
const patienceMs = 1_000;

loadEnvFiles(process.cwd());
process.exitCode = await runProgram(process.argv.slice(2));
setTimeout(() => {
  process.stderr.write("Something still keeps the process alive (a timer or socket of a task?); ending it.\n");
  process.exit();
}, patienceMs).unref();
