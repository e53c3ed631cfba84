// A worker that forwards jobs of `mail/*`. Its argument holds the options of `run`, the built library's folder, and which broker on which port.
import { connectTarget } from "./targets.mjs";

const { library, broker, port, maxInFlight = 50, ...options } = JSON.parse(process.argv[2]);
const { run, Logger } = await import(library);
const adapters = await import(library.replace(/index\.js$/, "forward/index.js"));

const to = await connectTarget(adapters, broker, port);
const runner = await run({
  ...options,
  taskList: {},
  parsedCronItems: [],
  forward: [adapters.forward({ tasks: ["mail/*"], to, maxInFlight, backoff: { type: "fixed", delay: 50 } })],
  logger: new Logger(() => (level, message) => {
    if (level !== "debug") console.log(`${level}: ${message}`);
  }),
});
console.log("ready");
process.stdin.once("data", () => void runner.stop());
await runner.promise;
process.exit(0);
