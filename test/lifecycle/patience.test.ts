import { expect, onTestFinished, test, vi } from "vitest";
import { Lifecycle } from "../../src/lifecycle-hooks.ts";
import { rememberingLogger } from "../support/log.ts";

const never = (): Promise<never> => new Promise(() => undefined);

function standStill(): void {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
}

test("a worker that ends waits for its last hook, but not for ever", async () => {
  standStill();
  const { logger, lines } = rememberingLogger();
  const lifecycle = new Lifecycle({ workerShutdown: [never] }, logger);
  const ended = lifecycle.observeLast("workerShutdown", {
    workerId: "w",
    reason: "graceful",
    error: null,
    withPgClient: never as never,
  });
  await vi.advanceTimersByTimeAsync(5_000);
  await ended;
  expect(lines.map(({ message }) => message)).toEqual([
    "A hook 'workerShutdown' took longer than 5 s; going on without it. This is said once; it changes nothing else.",
  ]);
});

test("a recovery waits for an answer, but not for ever", async () => {
  standStill();
  const lifecycle = new Lifecycle({ jobRecovery: [never, () => "failWithBackoff"] }, rememberingLogger().logger);
  const job = {} as never;
  const decision = lifecycle.askRecovery({ job, workerId: "w", previousWorkerId: "v", reason: "workerCrashed" });
  await vi.advanceTimersByTimeAsync(5_000);
  expect(await decision).toBe("failWithBackoff");
});
