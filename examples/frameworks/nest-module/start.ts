// A Nest application whose providers add jobs and do their work.
import "reflect-metadata";
import { EventEmitter, once } from "node:events";
import { startEmbedded } from "@hathi/embedded";
import { NestFactory } from "@nestjs/core";
import type { WorkerEvents } from "hathi";
import { AppModule, UsersService } from "./app.module.ts";

const server = process.env.DATABASE_URL ? undefined : await startEmbedded({ dataDir: ".hathi" });
const connectionString = process.env.DATABASE_URL ?? server?.connectionString ?? "";
const events: WorkerEvents = new EventEmitter();

const app = await NestFactory.createApplicationContext(AppModule.with({ connectionString, events }));
app.enableShutdownHooks();

const completed = once(events, "job:complete");
await app.get(UsersService).signUp("ada@example.com");
await completed;

await app.close();
await server?.stop();
