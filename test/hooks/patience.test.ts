import { expect, test } from "vitest";
import { Lifecycle } from "../../src/hooks/lifecycle.ts";
import { rememberingLogger } from "../support/log.ts";

const never = (): Promise<never> => new Promise(() => undefined);

test("a worker that ends waits for its last hook, but not for ever", async () => {
  const { logger, lines } = rememberingLogger();
  const lifecycle = new Lifecycle({ workerShutdown: [never] }, logger, {}, 20);
  const ended = lifecycle.observeLast("workerShutdown", {
    workerId: "w",
    reason: "graceful",
    error: null,
    withPgClient: never as never,
  });
  await ended;
  expect(lines.map(({ message }) => message)).toEqual([
    "A hook 'workerShutdown' took longer than 0.02 s; going on without it. This is logged once; jobs are not affected.",
  ]);
});

test("a recovery waits for an answer, but not for ever", async () => {
  const lifecycle = new Lifecycle(
    { jobRecovery: [never, () => "failWithBackoff"] },
    rememberingLogger().logger,
    {},
    20,
  );
  const job = {} as never;
  const decision = lifecycle.askRecovery({ job, workerId: "w", previousWorkerId: "v", reason: "workerCrashed" });
  expect(await decision).toBe("failWithBackoff");
});
