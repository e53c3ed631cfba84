// The worker's own process: it stops by itself on SIGTERM and SIGINT, after the jobs that are running.
import { run } from "hathi";

const runner = await run({
  connectionString: process.env.DATABASE_URL,
  concurrency: 5,
  recovery: true,
  taskList: {
    "welcome-sign-up": ({ email }) => console.log(`worker ${process.pid}: Welcome, ${email}`),
  },
});
console.log(`worker ${process.pid}: ready`);
await runner.promise;
