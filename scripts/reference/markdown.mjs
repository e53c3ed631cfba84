const notice = "<!-- Made by scripts/generate-reference.mjs from the source. Change it there, or the source. -->";

export function page(...parts) {
  return `${[notice, ...parts].join("\n\n")}\n`;
}

export function table(titles, rows) {
  const line = (cells) => `| ${cells.join(" | ")} |`;
  return [line(titles), line(titles.map(() => "---")), ...rows.map((cells) => line(cells.map(cell)))].join("\n");
}

/** A line break or a bar would end the cell. */
function cell(text) {
  return text.replace(/\s*\n\s*/g, " ").replaceAll("|", "\\|");
}

export function code(text) {
  return text === "" ? "" : `\`${text}\``;
}
