// `npm run soak -- 10m`: workers under a mixture of troubles for so long; reports heap, event-loop delay, dead rows and what went wrong.
// `--seed N` repeats a run.
import { spawnSync } from "node:child_process";
import { parseArgs } from "node:util";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seed: { type: "string", default: "1" } },
});
const [, count, unit] = /^(\d+)(s|m|h)$/.exec(positionals[0] ?? "10m") ?? [];
if (count === undefined) throw new Error(`Say how long, such as 90s, 10m or 2h, not '${positionals[0]}'.`);
const ms = Number(count) * { s: 1_000, m: 60_000, h: 3_600_000 }[unit];
const { status } = spawnSync("npx", ["--no-install", "vitest", "run", "--config", "test/chaos/soak.config.ts"], {
  stdio: "inherit",
  env: { ...process.env, SOAK_MS: String(ms), SOAK_SEED: values.seed },
});
process.exit(status ?? 1);
