import { formatNumber } from "./format.mjs";

const colours = {
  ours: "#0b6e4f",
  "ours-safe": "#5fad8c",
  "graphile-worker": "#8d6a9f",
  "graphile-worker-tuned": "#b99bc9",
  "pg-boss": "#c97b3d",
  "bullmq-postgres": "#c2454f",
  "bullmq-redis": "#e09aa0",
};
const rowHeight = 18;
const left = 250;
const barWidth = 460;

/** Bars of every system in every case, for each main figure of a scenario, on one linear scale per figure and case. */
export function plot({ title, metrics, cases }) {
  const parts = [];
  let y = 34;
  for (const measured of cases) {
    for (const metric of metrics) {
      const rows = measured.rows.filter((row) => row.metrics[metric.key]);
      if (rows.length === 0) continue;
      parts.push(text(10, y + 12, `${measured.title}: ${metric.title} (${metric.better} is better)`, "bold"));
      y += rowHeight + 2;
      const longest = Math.max(...rows.map((row) => row.metrics[metric.key].max)) || 1;
      for (const row of rows) {
        parts.push(bar(y, row, row.metrics[metric.key], longest));
        y += rowHeight;
      }
      y += 12;
    }
  }
  const width = left + barWidth + 120;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${y}" viewBox="0 0 ${width} ${y}" font-family="sans-serif" font-size="12">`,
    `<title>${escapeXml(title)}</title>`,
    `<rect width="${width}" height="${y}" fill="#ffffff"/>`,
    `<text x="10" y="20" font-size="15" font-weight="bold" fill="#222222">${escapeXml(title)}</text>`,
    ...parts,
    "</svg>",
    "",
  ].join("\n");
}

function bar(y, row, { median, min, max }, longest) {
  const at = (value) => (left + (value / longest) * barWidth).toFixed(1);
  const middle = y + rowHeight / 2;
  return [
    text(20, y + 13, row.title),
    `<rect x="${left}" y="${y + 3}" width="${((median / longest) * barWidth).toFixed(1)}" height="${rowHeight - 6}" fill="${colours[row.system] ?? "#777777"}"/>`,
    `<line x1="${at(min)}" y1="${middle}" x2="${at(max)}" y2="${middle}" stroke="#222222"/>`,
    text(Number(at(max)) + 6, y + 13, formatNumber(median)),
  ].join("");
}

function text(x, y, content, weight = "normal") {
  return `<text x="${x}" y="${y}" font-weight="${weight}" fill="#222222">${escapeXml(content)}</text>`;
}

function escapeXml(content) {
  return content.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
