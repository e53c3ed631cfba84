import { parseOptions } from "./options.mjs";
import { prepare } from "./prepare.mjs";

const options = parseOptions(process.argv.slice(2));
prepare(options);
// Only now: the modules behind it need what `prepare` installed and built.
const { benchmark } = await import("./benchmark.mjs");
await benchmark(options);
