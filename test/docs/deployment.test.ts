import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, expect, test, vi } from "vitest";
import { parse } from "yaml";
import { freshDatabase } from "../support/database.ts";
import { hasPgBouncer, noPgBouncer, startPgBouncer } from "../support/pgbouncer.ts";
import { startCommand } from "../support/program.ts";
import { makeProject } from "../support/project.ts";
import { buildImage, type Image } from "./dockerfile.ts";
import { makeFolder, packBoth } from "./packed.ts";
import { blocksOf, readPage } from "./pages.ts";

/* What docs/deployment.md tells to write down: built, checked and run as far as that goes without a container. */

// Packages are installed, on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 240_000 });

const blocks = blocksOf(readPage("docs/deployment.md"));

function blockOf(language: string, file?: string): string {
  const found = blocks.filter((block) => block.language === language && block.file === file);
  expect(found, `blocks of ${language} ${file}`).toHaveLength(1);
  return found[0]!.text;
}

const sh = async (line: string, cwd: string): Promise<unknown> => promisify(execFile)("sh", ["-c", line], { cwd });
/** An account that every system has, in the place of theirs. Where we are nobody special ourselves, it is us. */
const someone = process.getuid?.() === 0 ? { uid: 65_534 } : {};

const task = 'export default ({ name }, { logger }) => logger.info("Hello, " + name + "!");';

let image: Image;
beforeAll(async () => {
  const { folder: base, remove } = await makeFolder("deployment");
  const context = join(base, "project");
  await mkdir(join(context, "tasks"), { recursive: true });
  await writeFile(join(context, "package.json"), '{ "name": "app", "type": "module", "private": true }');
  await writeFile(join(context, "tasks/hello.mjs"), task);
  const { hathi } = await packBoth(base);
  await sh(`npm install ${hathi} --prefer-offline --no-audit --no-fund --ignore-scripts`, context);
  await writeFile(join(context, "node_modules/of-another-machine"), "");
  const ignored = blockOf("text", ".dockerignore").trim().split("\n");
  image = await buildImage(blockOf("dockerfile"), { base, context, ignored });
  return remove;
});

/** Starts a worker, has it run a job, and tells it to stop. */
async function work(
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<void> {
  const db = await freshDatabase();
  await db.query(`select graphile_worker.add_job('hello', '{"name":"Ada"}')`);
  const worker = startCommand(program, args, {
    cwd: image.folder,
    env: { ...image.env, DATABASE_URL: db.url, ...env },
    ...someone,
  });
  await worker.says(/^\{.*Hello, Ada!.*\}$/m);
  worker.kill("SIGTERM");
  expect(await worker.ended).toMatchObject({ code: 0 });
  expect(await db.jobs()).toEqual([]);
}

test("the Dockerfile's steps lead to a worker that runs jobs as a normal user and stops on SIGTERM", async () => {
  expect(image.user).toBe("node");
  const [program, ...args] = image.command;
  await work(program!, args);
  await expect(sh("test -e node_modules/of-another-machine", image.folder)).rejects.toThrow();
});

test("the manifest for Kubernetes starts the same program with a database", () => {
  const { apiVersion, kind, spec } = parse(blockOf("yaml"));
  expect([apiVersion, kind]).toEqual(["apps/v1", "Deployment"]);
  expect(spec.template.metadata.labels).toMatchObject(spec.selector.matchLabels);
  expect(spec.template.spec.terminationGracePeriodSeconds).toBeGreaterThan(30);
  const [container] = spec.template.spec.containers;
  expect(container.args.slice(0, image.command.length)).toEqual(image.command);
  expect(container.args.slice(image.command.length)).toEqual(["--metrics-port", "9464", "--metrics-host", "0.0.0.0"]);
  expect(container.ports).toEqual([{ name: "metrics", containerPort: 9464 }]);
  expect(container.livenessProbe.httpGet).toEqual({ path: "/livez", port: "metrics" });
  expect(container.readinessProbe.httpGet).toEqual({ path: "/readyz", port: "metrics" });
  expect(container.env).toMatchObject([{ name: "DATABASE_URL", valueFrom: { secretKeyRef: { key: "url" } } }]);
});

test("the unit for systemd is one, and starts a worker", async () => {
  const unit = blockOf("ini").replaceAll("/srv/app", image.folder);
  const [, start] = /^ExecStart=(.+)$/m.exec(unit) ?? [];
  const [program, ...args] = start!.split(" ");
  await work(program!, args);

  const project = await makeProject({ "worker.service": unit });
  const verify = promisify(execFile)("systemd-analyze", ["verify", "--man=no", project.path("worker.service")]);
  // Warnings do not change the exit code; of other units of this machine it may say what it likes.
  const said = await verify.then(({ stderr }) => stderr).catch(saidUnlessMissing);
  expect(said.split("\n").filter((line) => line.includes("worker.service"))).toEqual([]);
});

/** Where there is no systemd, its program is missing, too. */
function saidUnlessMissing(error: Error & { code?: string; stderr?: string }): string {
  if (error.code === "ENOENT") return "";
  return `worker.service: ${error.message} ${error.stderr}`;
}

test("a worker works through a PgBouncer that is set up as the page says", async ({ skip }) => {
  skip(!hasPgBouncer, noPgBouncer);
  const db = await freshDatabase();
  await db.query(`select graphile_worker.add_job('hello', '{"name":"Ada"}')`);
  const target = new URL(db.url);
  target.password ||= "secret";
  const { path } = await makeProject({ "userlist.txt": `"${target.username}" "${target.password}"\n` });
  await sh("chmod 755 . && chmod 644 userlist.txt", path("."));

  const through = await startPgBouncer(target.href, (_, port) =>
    blockOf("ini", "pgbouncer.ini")
      .replace(/^app = .*$/m, `${db.name} = host=${target.hostname} port=${target.port} dbname=${db.name}`)
      .replace("listen_port = 6432", `listen_port = ${port}\nunix_socket_dir =`)
      .replace("/etc/pgbouncer/userlist.txt", path("userlist.txt")),
  );
  const worker = startCommand(image.command[0]!, image.command.slice(1), {
    cwd: image.folder,
    env: { ...image.env, DATABASE_URL: through },
  });
  await worker.says(/Hello, Ada!/);
  await worker.says(/Notifications do not arrive/);
  await db.query(`select graphile_worker.add_job('hello', '{"name":"Grace"}')`);
  await worker.says(/Hello, Grace!/);
  worker.kill("SIGTERM");
  expect(await worker.ended).toMatchObject({ code: 0 });
  expect(await db.jobs()).toEqual([]);
});
