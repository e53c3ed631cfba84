// An original Graphile Worker as a process of its own: says what it runs, until it is told to stop by a signal.
import { pathToFileURL } from "node:url";

const [entry, connectionString] = process.argv.slice(2);
const module = await import(pathToFileURL(entry).href);
const { run } = module.run ? module : module.default;

const runner = await run({
  connectionString,
  concurrency: 2,
  pollInterval: 200,
  taskList: {
    greet: async (payload) => console.log(`greeted ${JSON.stringify(payload)}`),
    stumble: async () => {
      throw new Error("stumbled");
    },
  },
});
console.log("original is running");
await runner.promise;
console.log("original has stopped");
