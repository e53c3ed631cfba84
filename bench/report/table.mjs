import { costTitles, formatNumber, formatRatio, formatSpread } from "./format.mjs";

/** The table of one case: rows of cells, the first row being the head. Ratios above 1 mean better. */
export function tableOf({ metrics }, { rows }) {
  const find = (name) => rows.find((row) => row.system === name);
  const peers = [
    ["default", find("graphile-worker")],
    ["tuned", find("graphile-worker-tuned")],
  ].filter(([, row]) => row);
  const shown = metrics.filter(({ key }) => rows.some((row) => row.metrics[key]));
  const costs = Object.keys(costTitles).filter((key) => rows.some((row) => Number.isFinite(row.costs[key])));
  const ratios = shown.flatMap((metric) =>
    peers.map(([label, peer]) => ({
      metric,
      peer,
      title: shown.length > 1 ? `${metric.title}, × GW ${label}` : `× GW ${label}`,
    })),
  );
  return [
    [
      "system",
      ...shown.map(({ title }) => title),
      ...ratios.map(({ title }) => title),
      ...costs.map((key) => costTitles[key]),
    ],
    ...rows.map((row) => [
      row.title,
      ...shown.map(({ key }) => formatSpread(row.metrics[key])),
      ...ratios.map(({ metric, peer }) =>
        formatRatio(row.metrics[metric.key], peer.metrics[metric.key], metric.better),
      ),
      ...costs.map((key) => formatNumber(row.costs[key])),
    ]),
  ];
}

/** The same as Markdown, with columns lined up so that it reads in a terminal, too. */
export function toMarkdown(table) {
  const widths = table[0].map((_, column) => Math.max(...table.map((row) => [...row[column]].length), 3));
  const line = (row) =>
    `| ${row.map((cell, column) => (column === 0 ? cell.padEnd(widths[column]) : cell.padStart(widths[column]))).join(" | ")} |`;
  const rule = widths.map((width, column) => (column === 0 ? "-".repeat(width) : `${"-".repeat(width - 1)}:`));
  return [line(table[0]), line(rule), ...table.slice(1).map(line)].join("\n");
}

export function printCase(scenario, measured) {
  console.log(`\n${measured.title}\n`);
  console.log(measured.rows.length > 0 ? toMarkdown(tableOf(scenario, measured)) : "Nothing was measured.");
}
