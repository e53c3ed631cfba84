/** About as many characters as a phone shows side by side. */
const narrow = 50;

/** Marks tables that are too wide for a phone, and their cells with the heads of their columns: there, cells go below each other. */
export function stackWideTables(md) {
  const open = md.renderer.rules.table_open;
  md.renderer.rules.table_open = (tokens, index, ...rest) => {
    const html = open(tokens, index, ...rest);
    const name = tokens[index].meta?.className;
    return name ? html.replace("<table", `<table class="${name}"`) : html;
  };
  md.core.ruler.push("stack_wide_tables", ({ tokens }) => {
    for (const [start, token] of tokens.entries()) {
      if (token.type === "table_open") mark(tokens.slice(start, tokens.indexOf(findEnd(tokens, start))));
    }
  });
}

function findEnd(tokens, start) {
  return tokens.slice(start).find(({ type }) => type === "table_close");
}

function mark([table, ...tokens]) {
  const textAfter = (token) => textOf(tokens[tokens.indexOf(token) + 1]);
  const heads = tokens.filter(({ type }) => type === "th_open").map(textAfter);
  const cells = tokens.filter(({ type }) => type === "td_open");
  const columnOf = (cell) => cells.indexOf(cell) % heads.length;
  const widths = heads.map((head, column) =>
    Math.max(
      ...[head, ...cells.filter((cell) => columnOf(cell) === column).map(textAfter)].map(({ length }) => length),
    ),
  );
  if (widths.reduce((sum, width) => sum + width, 0) <= narrow) return;
  // Of two columns it is enough to say once which is which.
  table.meta = { className: heads.length === 2 ? "stacked" : "stacked labelled" };
  if (heads.length === 2) return;
  for (const cell of cells) if (columnOf(cell) > 0) cell.attrSet("data-head", heads[columnOf(cell)]);
}

function textOf(inline) {
  return inline.children.map(({ content }) => content).join("");
}
