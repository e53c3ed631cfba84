import { median, summarise } from "./measure/statistics.mjs";

/** Measures every system in turn, round after round, so that a slow minute of the machine hits them all. */
export async function runCase({ scenario, testCase, systems, server, places, options }) {
  const rounds = new Map(systems.map((system) => [system, []]));
  const failures = new Map();
  for (let round = 0; round < options.rounds; round++) {
    for (const system of rotate(systems, round)) {
      if (failures.has(system)) continue;
      try {
        const {
          samples: _samples,
          records: _records,
          ...values
        } = await scenario.measure({ server, places, system, options }, testCase);
        rounds.get(system).push(values);
        progress(scenario, testCase, system, round, values);
      } catch (error) {
        // What fails because we are cleaning up says nothing about the system, and must not replace an earlier result.
        options.signal.throwIfAborted();
        failures.set(system, error);
        console.log(`Left out: ${system.title} in '${testCase.title}': ${firstLines(error)}`);
      }
    }
  }
  return {
    title: testCase.title,
    rows: systems
      .filter((system) => rounds.get(system).length > 0)
      .map((system) => ({
        system: system.name,
        title: system.title,
        ...summariseRounds(scenario, rounds.get(system)),
      })),
    failures: [...failures].map(([system, error]) => ({ title: system.title, reason: firstLines(error) })),
  };
}

/** No system is always the first after a pause, or the one after the slowest. */
function rotate(systems, by) {
  const start = by % Math.max(systems.length, 1);
  return [...systems.slice(start), ...systems.slice(0, start)];
}

function summariseRounds({ metrics }, rounds) {
  const keys = [...new Set(rounds.flatMap((values) => Object.keys(values)))];
  const main = metrics.map(({ key }) => key);
  return {
    metrics: Object.fromEntries(main.map((key) => [key, summarise(rounds.map((values) => values[key]))])),
    costs: Object.fromEntries(
      keys.filter((key) => !main.includes(key)).map((key) => [key, median(rounds.map((values) => values[key]))]),
    ),
    rounds,
  };
}

function progress(scenario, testCase, system, round, values) {
  if (!process.stderr.isTTY) return;
  const shown = scenario.metrics.map(({ key, title }) => `${title} ${values[key]?.toFixed(1)}`).join(", ");
  process.stderr.write(`  ${testCase.title}, round ${round + 1}: ${system.title}: ${shown}\n`);
}

function firstLines(error) {
  return String(error.message).split("\n").slice(0, 2).join(" ").slice(0, 300);
}
