import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { plot } from "./plot.mjs";
import { tableOf, toMarkdown } from "./table.mjs";

const resultsDir = fileURLToPath(new URL("../results/", import.meta.url));
const summaryFile = fileURLToPath(new URL("../RESULTS.md", import.meta.url));

/** Keeps one scenario's result as JSON and as a plot, and writes RESULTS.md anew from all that are kept; with `keep` also the cases that were not measured. */
export async function writeResults({ machine, leftOut, result, keep }) {
  await mkdir(resultsDir, { recursive: true });
  const file = `${resultsDir}${result.name}.json`;
  const whole = keep ? { ...result, cases: await joinCases(file, machine, result.cases) } : result;
  const reasons = leftOut.map(({ system, reason }) => ({ title: system.title, reason }));
  await writeFile(file, `${JSON.stringify({ ...machine, leftOut: reasons, result: whole }, undefined, 2)}\n`);
  await writeFile(`${resultsDir}${result.name}.svg`, plot(whole));
  await writeFile(summaryFile, renderSummary(await readAll()));
}

/** What was measured now, each case with its own date, after what was measured before. */
async function joinCases(file, { date, commit, machine, rounds }, cases) {
  const before = await readFile(file, "utf8").catch(() => undefined);
  const others = before ? JSON.parse(before).result.cases : [];
  const titles = new Set(cases.map(({ title }) => title));
  const measured = { date, commit, rounds, loadBefore: machine.loadBefore };
  return [
    ...others.filter(({ title }) => !titles.has(title)),
    ...cases.map((each) => ({ ...each, measured })),
  ].toSorted((one, other) => one.title.localeCompare(other.title, "en", { numeric: true }));
}

async function readAll() {
  const names = (await readdir(resultsDir)).filter((name) => name.endsWith(".json"));
  names.sort((a, b) => Number.parseInt(a.slice(1), 10) - Number.parseInt(b.slice(1), 10));
  return Promise.all(names.map(async (name) => JSON.parse(await readFile(`${resultsDir}${name}`, "utf8"))));
}

function renderSummary(all) {
  return `# Results

Written by \`npm run bench\`; do not edit. Medians of the rounds, with the lowest and the highest in brackets. Ratios above 1 mean better than
graphile-worker (GW), whichever way better is. A job counts as done when its row is gone (for pg-boss: completed). The clock of a drain
runs from the moment \`run()\` has resolved, or the first job has started if that is earlier: connecting is not counted, the first claim is.
The column "start ms" is the time from the call of \`run()\` to the first job.

${all.map(renderScenario).join("\n")}`;
}

function renderScenario({
  result,
  machine,
  versions,
  settings,
  date,
  commit,
  rounds,
  concurrency,
  limitSeconds,
  leftOut,
}) {
  const { name, title, about, target, cases } = result;
  const out = [
    ...leftOut,
    ...result.leftOut,
    ...cases.flatMap(({ failures, title: where }) => failures.map((failure) => ({ ...failure, where }))),
  ];
  return [
    `## ${name.toUpperCase()} ${title}`,
    about,
    `Target: ${target}.`,
    `${date}, commit ${commit}. ${machine.cores} × ${machine.cpu}, ${machine.memoryGb} GB, ${machine.system}, load before ${machine.loadBefore.toFixed(1)}. ` +
      `${listed(versions)}. ${rounds} rounds, concurrency ${concurrency}, at most ${limitSeconds} s per drain.`,
    `PostgreSQL settings: ${listed(settings)}.`,
    ...out.map(({ title: who, reason, where }) => `Left out: ${who}${where ? ` in '${where}'` : ""}: ${reason}.`),
    ...cases.flatMap((measured) => [
      `### ${measured.title}`,
      ...(measured.measured ? [whenMeasured(measured.measured)] : []),
      measured.rows.length > 0 ? toMarkdown(tableOf(result, measured)) : "Nothing was measured.",
    ]),
    `![${title}](results/${name}.svg)`,
    "",
  ].join("\n\n");
}

function whenMeasured({ date, commit, rounds, loadBefore }) {
  const times = rounds === 1 ? "One round" : `${rounds} rounds`;
  return `${times}, ${date}, commit ${commit}, load before ${loadBefore.toFixed(1)}.`;
}

function listed(object) {
  return Object.entries(object)
    .map(([name, value]) => `${name} ${value}`)
    .join(", ");
}
