/** What the costs beside the main figures are called. */
export const costTitles = {
  pgCpuUs: "PG CPU µs/job",
  nodeCpuUs: "Node CPU µs/job",
  walBytes: "WAL B/job",
  commits: "commits/job",
  statements: "statements/job",
  rssMb: "peak RSS MB",
  startMs: "start ms",
  done: "done",
  maxMs: "max ms",
  nodeCpuPercent: "Node CPU %",
  pgCpuPercent: "PG CPU %",
  statementsPerAdd: "statements per add",
};

/** Three figures that matter, thousands with commas. */
export function formatNumber(value) {
  if (value === undefined || value === null || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 100) return Math.round(value).toLocaleString("en");
  if (size >= 10) return value.toFixed(1);
  if (size >= 1) return value.toFixed(2);
  return size === 0 ? "0" : value.toFixed(3);
}

export function formatSpread(summary) {
  if (!summary) return "–";
  if (summary.rounds === 1) return formatNumber(summary.median);
  return `${formatNumber(summary.median)} (${formatNumber(summary.min)}–${formatNumber(summary.max)})`;
}

/** How many times better than the other, whichever way better is. */
export function formatRatio(summary, other, better) {
  if (!summary || !other || !summary.median || !other.median) return "–";
  const ratio = better === "higher" ? summary.median / other.median : other.median / summary.median;
  return `${formatNumber(ratio)}×`;
}
