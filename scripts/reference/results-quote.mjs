/** What the comparison quotes of bench/RESULTS.md. */
const quoted = ["S1", "S2", "S3", "S5", "S6", "S9"];
const marks = /(<!-- results:start -->\n)[\s\S]*?(<!-- results:end -->)/;

/** The page with the figures of the last recorded run in the place that is marked for them. */
export function quoteResults(page, results) {
  if (!marks.test(page)) throw new Error("The page has no '<!-- results:start -->' and '<!-- results:end -->'.");
  return page.replace(marks, (_, start, end) => `${start}\n${describe(results)}\n\n${end}`);
}

function describe(results) {
  if (results === undefined) return "No full run has been recorded yet. `npm run bench` makes one.";
  const sections = results
    .split(/^## /m)
    .slice(1)
    .filter((section) => quoted.includes(section.split(" ")[0]));
  if (sections.length === 0) return "The recorded run has none of the scenarios that are quoted here.";
  const [, made = ""] = /^(\d{4}-\d\d-\d\dT.*)$/m.exec(sections[0]) ?? [];
  return [
    "From `bench/RESULTS.md`: medians of the rounds, with the lowest and the highest in brackets; the file has more scenarios, and what each cost.",
    ...(made ? [made] : []),
    ...sections.map(quoteSection),
  ].join("\n\n");
}

function quoteSection(section) {
  const [title = "", , about = ""] = section.split("\n");
  const cases = section.split(/^### /m).slice(1).map(quoteCase);
  return [`### ${title.replace(/^S\d+ /, "")}`, about, ...cases].join("\n\n");
}

function quoteCase(text) {
  const [title] = text.split("\n");
  const rows = text
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .map((line) =>
      line
        .slice(1, -1)
        .split("|")
        .map((cell) => cell.trim()),
    );
  // Ratios and costs stay in the file.
  const isFigure = (head) => /^p\d+ ms$/.test(head) || !/× GW|\/job|MB$|%$|ms$|^done$|per add$/.test(head);
  const columns = (rows[0] ?? []).flatMap((head, index) => (isFigure(head) ? [index] : []));
  const kept = rows.map((cells) => `| ${columns.map((index) => cells[index]).join(" | ")} |`);
  return [`**${title}**`, kept.length > 0 ? kept.join("\n") : "Nothing was measured."].join("\n\n");
}
