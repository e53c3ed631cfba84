import { expect, test } from "vitest";
import { describeFailure } from "../../src/cli/report-failure.ts";
import { ConfigError } from "../../src/errors.ts";

test("an unknown failure is shown with its stack and its causes", () => {
  const { message, exitCode } = describeFailure(new Error("outer", { cause: new Error("inner") }));
  expect(message).toMatch(/^Error: outer\n.*report-failure\.test\.ts.*\n {2}cause: Error: inner\n/s);
  expect(exitCode).toBe(1);
});

test("a failure that can be explained stays one line", () => {
  const error = new ConfigError("Bad option.", { cause: new Error("inner") });
  expect(describeFailure(error)).toEqual({ message: "Bad option.", exitCode: 1 });
});

test("a failure that cannot be looked at is reported all the same", () => {
  const { proxy, revoke } = Proxy.revocable(new Error("gone"), {});
  revoke();
  expect(describeFailure(proxy).message).toContain("Non-error thrown: [unreadable]");
});
