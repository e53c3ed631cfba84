// A worker that only forwards, to a target that answers when its standard input gets a line. Started by signals.test.ts.
const [library, connectionString] = process.argv.slice(2);
const { run } = await import(library);
const { forward } = await import(library.replace(/index\.js$/, "forward/index.js"));

let answer = () => undefined;
process.stdin.on("data", () => answer());
const to = async (batch) => {
  console.log("publishing");
  await new Promise((resolve) => {
    answer = resolve;
  });
  return batch.map(() => "acked");
};
const runner = await run({ connectionString, taskList: {}, forward: [forward({ tasks: ["mail/*"], to })] });
await runner.promise;
console.log("ended");
