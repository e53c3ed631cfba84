import { expect, test } from "vitest";
import { ConfigError } from "../../src/errors.ts";
import { type HookPlugin, makeHooks } from "../../src/hooks/registry.ts";
import { compileSharedOptions } from "../../src/runner/compile.ts";

const one = (): void => undefined;
const two = (): void => undefined;
const three = (): void => undefined;

test("hooks of one name keep the order in which they were registered, whatever form they came in", () => {
  const plugin: HookPlugin = { register: (hooks) => void hooks.on("jobStart", two).on("jobFail", two) };
  const lists = makeHooks({ jobStart: one })
    .use(plugin)
    .use([{ jobStart: [three, one] }, makeHooks().on("jobFetch", one)])
    .take();
  expect(lists).toEqual({ jobStart: [one, two, three, one], jobFail: [two], jobFetch: [one] });
});

test("a hook left undefined is no hook", () => {
  const given: object = { jobStart: undefined };
  expect(makeHooks(given).take()).toEqual({});
});

test("a name that does not exist is refused, with the one that was meant", () => {
  const given: object = { onJobStart: one };
  expect(() => makeHooks(given)).toThrow(new ConfigError("There is no hook 'onJobStart'. Did you mean 'jobStart'?"));
  expect(() => makeHooks({ toString: one } as object)).toThrow("There is no hook 'toString'.");
});

test("what is not a function is refused", () => {
  const given: object = { jobStart: [one, "two"] };
  expect(() => makeHooks(given)).toThrow(
    "The hook 'jobStart' must be a function, or an array of functions, got 'two'.",
  );
});

test("a hook that comes after the start is refused, not ignored", () => {
  const hooks = makeHooks().on("jobStart", one);
  compileSharedOptions({ hooks, connectionString: "postgres:///" } as object);
  expect(() => hooks.on("jobFail", one)).toThrow("A hook 'jobFail' came too late");
  expect(hooks.take()).toEqual({ jobStart: [one] });
});

test("a preset's plugin brings hooks of its own, which are called before those of the option", () => {
  const called: string[] = [];
  const plugin: GraphileConfig.Plugin = {
    name: "PluginWithHooks",
    version: "0.0.0",
    worker: { lifecycle: { localQueueInit: () => void called.push("plugin") } },
  };
  const { lifecycle } = compileSharedOptions({
    connectionString: "postgres:///",
    preset: { plugins: [plugin] },
    hooks: { localQueueInit: () => void called.push("option") },
  } as object);
  expect(lifecycle.has("localQueueInit")).toBe(true);
  expect(lifecycle.has("jobStart", "jobFail")).toBe(false);
  lifecycle.observe("localQueueInit", { workerId: "w" });
  expect(called).toEqual(["plugin", "option"]);
});
