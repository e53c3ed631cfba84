import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { PrismaPg } from "@prisma/adapter-pg";
import type { CallerTransaction } from "../../../src/caller-transaction.ts";
import type { Library } from "./library.ts";

interface PrismaClient {
  $transaction<T>(work: (tx: CallerTransaction) => Promise<T>): Promise<T>;
  $disconnect(): Promise<void>;
}

type Generated = { PrismaClient: new (options: { adapter: PrismaPg }) => PrismaClient };

/** Once in a process: it takes seconds. */
let generated: Promise<Generated> | undefined;

const home = fileURLToPath(new URL("..", import.meta.url));

export const prisma: Library = {
  name: "Prisma",
  open: async (url) => {
    generated ??= generateClient();
    const { PrismaClient } = await generated;
    const client = new PrismaClient({ adapter: new PrismaPg({ connectionString: url, max: 1 }) });
    return { transaction: (work) => client.$transaction(work), outside: client, close: () => client.$disconnect() };
  },
};

/** Prisma's client is generated code, made here so that nothing generated is kept in the repository. */
async function generateClient(): Promise<Generated> {
  const cli = fileURLToPath(new URL("../node_modules/prisma/build/index.js", import.meta.url));
  // Processes that start at the same time would write the same files.
  if (process.env.HATHI_PRISMA_IS_GENERATED) return importClient();
  await promisify(execFile)(process.execPath, [cli, "generate", "--schema", "prisma/schema.prisma"], {
    cwd: home,
    // Generating needs no schema engine, but would download one; any program that exists keeps it from doing so.
    env: {
      ...process.env,
      PRISMA_SCHEMA_ENGINE_BINARY: process.execPath,
      CHECKPOINT_DISABLE: "1",
      PRISMA_HIDE_UPDATE_MESSAGE: "1",
    },
  });
  return importClient();
}

function importClient(): Promise<Generated> {
  return import(new URL("../.generated/prisma/client.ts", import.meta.url).href);
}
