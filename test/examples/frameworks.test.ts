import { spawnSync } from "node:child_process";
import { rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { startCommand } from "../support/program.ts";
import { examplePath, setStage } from "./kit.ts";

/* The examples with packages of their own, which scripts/test.mjs installs. */

const stage = setStage();

test("Fastify: the job commits with the order, and an order that is refused leaves none", async () => {
  const program = stage.start("frameworks/fastify-server/start.mjs", { PORT: "0" });
  const [, url = ""] = await program.says(/curl (\S+)/);
  const order = (product: string, amount: number): Promise<Response> =>
    fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ product, amount }),
    });

  expect((await order("umbrella", 0)).status).toBe(500);
  const answer = await order("umbrella", 2);
  expect(answer.status).toBe(201);
  expect(await answer.json()).toEqual({ id: expect.any(Number) });
  await program.says(/Completed task \d+ \(ship-order/);
  program.kill("SIGINT");
  const { code, stdout } = await program.ended;
  expect(stdout.match(/^Shipping.*$/gm)).toEqual(["Shipping 2 × umbrella"]);
  expect(code).toBe(0);
});

test("Nest: a provider adds a job, and another provider with something injected runs it", async () => {
  const project = examplePath("frameworks/nest-module");
  const tsc = join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin/tsc");
  await rm(join(project, "dist"), { recursive: true, force: true });
  const compiled = await startCommand(process.execPath, [tsc, "-p", project], { cwd: stage.folder(), input: "" }).ended;
  expect(compiled).toMatchObject({ code: 0, stdout: "" });

  const { code, stdout, stderr } = await stage.play("frameworks/nest-module/dist/start.js");
  expect(stderr).toBe("");
  expect(stdout).toContain("\nA mail for ada@example.com\n");
  expect(code).toBe(0);
});

const redis = "redis-server";
const hasRedis = spawnSync(redis, ["--version"]).status === 0;

test("the outbox forwards to BullMQ what was committed, once", async ({ skip }) => {
  skip(!hasRedis, `${redis} is not installed`);
  const { code, stdout, stderr } = await stage.play("frameworks/bullmq-outbox/start.mjs");
  expect(stderr).toBe("");
  expect(stdout).toMatch(/^BullMQ runs hathi-graphile_worker-\d+: mail\/welcome {"to":"ada@example.com"}$/m);
  expect(stdout).toContain("BullMQ got 1 job in all\n");
  expect(code).toBe(0);
});

test("without a Redis the outbox says how to get one", async () => {
  const { code, stderr } = await stage.play("frameworks/bullmq-outbox/start.mjs", { PATH: "" });
  expect(stderr).toContain("There is no redis-server here");
  expect(code).toBe(1);
});
