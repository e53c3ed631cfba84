import { Places } from "./places.mjs";
import { redisStore } from "./redis.mjs";
import { describeMachine } from "./report/machine.mjs";
import { writeResults } from "./report/results.mjs";
import { printCase } from "./report/table.mjs";
import { runCase } from "./run-case.mjs";
import { chooseScenarios } from "./scenarios/index.mjs";
import { startServer } from "./server.mjs";
import { dropSnapshot } from "./snapshot.mjs";
import { chooseSystems } from "./systems/index.mjs";

/** Measures the scenarios one after another on one server and writes down what came out. */
export async function benchmark(options) {
  const scenarios = chooseScenarios(options.scenarios);
  const server = await startServer(options);
  const cleanUp = async () => {
    dropSnapshot();
    await redisStore.stop();
    await server.stop();
  };
  const signal = endOnSignals(cleanUp);
  try {
    await server.claim();
    await runAll({ scenarios, server, places: new Places(server), options: { ...options, signal } });
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    await cleanUp();
  }
}

async function runAll({ scenarios, server, places, options }) {
  await places.clear();
  const { systems, leftOut } = await chooseSystems(options, places);
  const machine = describeMachine({ server, systems, options });
  printHead(machine, leftOut, server);
  for (const scenario of scenarios) {
    const result = await runScenario({ scenario, systems, server, places, options });
    if (options.write) await writeResults({ machine, leftOut, result, keep: options.keep });
  }
  await places.clear();
}

/** An interrupted run leaves no server behind; worker processes end when we do. */
function endOnSignals(cleanUp) {
  const interrupt = new AbortController();
  for (const [signal, exitCode] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ]) {
    process.once(signal, () => {
      console.error(`Interrupted by ${signal}.`);
      interrupt.abort();
      cleanUp().then(
        () => process.exit(exitCode),
        () => process.exit(exitCode),
      );
    });
  }
  return interrupt.signal;
}

async function runScenario({ scenario, systems, server, places, options }) {
  console.log(
    `\n## ${scenario.name.toUpperCase()} ${scenario.title}\n\n${scenario.about}\nTarget: ${scenario.target}.`,
  );
  const taking = [];
  const leftOut = [];
  for (const system of systems) {
    if ((system.family === "raw" || system.isExtra) && !scenario.joins?.includes(system.name)) continue;
    const reason = system.lacks?.[scenario.name] ?? scenario.lacks?.[system.name] ?? scenario.lacks?.[system.family];
    if (reason) leftOut.push({ title: system.title, reason });
    else taking.push(system);
  }
  for (const { title, reason } of leftOut) console.log(`Left out: ${title}: ${reason}.`);
  const cases = [];
  for (const testCase of chooseCases(scenario.cases(options), options.cases)) {
    const measured = await runCase({ scenario, testCase, systems: taking, server, places, options });
    printCase(scenario, measured);
    cases.push(measured);
    await places.forget();
  }
  const { name, title, about, target, metrics } = scenario;
  return { name, title, about, target, metrics, leftOut, cases };
}

/** A part that is the whole title of a case means that one alone. */
function chooseCases(all, parts) {
  if (!parts) return all;
  const titles = new Set(all.map(({ title }) => title));
  return all.filter(({ title }) => parts.some((part) => (titles.has(part) ? title === part : title.includes(part))));
}

function printHead(machine, leftOut, server) {
  console.log(JSON.stringify(machine, undefined, 2));
  for (const { system, reason } of leftOut) console.log(`Left out: ${system.title}: ${reason}.`);
  if (!server.hasStatements) console.log("pg_stat_statements is not preloaded: statements are not counted.");
  if (!server.postmasterPid) console.log("The server is not ours: its CPU time is not counted.");
}
