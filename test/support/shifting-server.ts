import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { startPrivateServer } from "./private-server.ts";

/** A PostgreSQL server whose clock a test can set while it runs. */
export interface ShiftingServer {
  readonly url: string;
  /** From now on its clock is this many seconds ahead of the real one; behind it, if below zero. */
  setClock(seconds: number): void;
}

/** Starts one with libfaketime. The clock by which PostgreSQL measures durations stays as it is. */
export async function startShiftingServer(): Promise<ShiftingServer> {
  const server = await startPrivateServer();
  onTestFinished(() => server.remove());
  await server.stop("fast");
  const folder = mkdtempSync(join(tmpdir(), "hathi-clock-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  // The server may run under another account.
  chmodSync(folder, 0o755);
  const file = join(folder, "clock");
  // A server that read a file half written would end.
  const setClock = (seconds: number): void => {
    writeFileSync(`${file}.new`, `${seconds < 0 ? "" : "+"}${seconds}\n`);
    renameSync(`${file}.new`, file);
  };
  setClock(0);
  await server.start({
    LD_PRELOAD: execFileSync("faketime", ["-m", "-f", "+0", "printenv", "LD_PRELOAD"], { encoding: "utf8" }).trim(),
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_NO_CACHE: "1",
    FAKETIME_DONT_FAKE_MONOTONIC: "1",
  });
  return { url: server.url, setClock };
}
