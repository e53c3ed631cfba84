import { createHash } from "node:crypto";
import pg from "pg";
import { withProcesses } from "./worker-process.mjs";

/** All task names a scenario may use; `other` is one that no worker knows. */
export const spreadTasks = Array.from({ length: 20 }, (_, i) => `job_${i}`);
const allTasks = ["job", "other", ...spreadTasks];

/** A place is a database of its own for one measurement, cloned from a template that was filled once. */
export class Places {
  #server;
  #templates = new Map();
  #lastPlace = 0;

  constructor(server) {
    this.#server = server;
  }

  /** A fresh place of this system, holding what `fill` put in. Templates are kept by `key` until `forget`. */
  async open(system, key, fill) {
    if (system.store) return system.store.openPlace(system, fill);
    const template = await this.#template(system, key, fill);
    const name = `bench_${++this.#lastPlace}`;
    await this.#create(name, template);
    return this.#connect(name);
  }

  /** Drops the filled templates; those that only hold the schema stay. */
  async forget() {
    for (const [key, name] of this.#templates) {
      if (!key.includes("/")) continue;
      await this.#drop(await name);
      this.#templates.delete(key);
    }
  }

  async clear() {
    const { rows } = await this.#server.admin.query("select datname from pg_database where datname like 'bench\\_%'");
    for (const { datname } of rows) await this.#drop(datname);
  }

  #template(system, key, fill) {
    if (!fill) return this.#once(system.schema, () => this.#installed(system));
    return this.#once(`${system.schema}/${key}`, async (name) => {
      await this.#create(name, await this.#template(system));
      const place = await this.#connect(name);
      await fill(place);
      await place.query("vacuum (analyze)");
      await place.close();
    });
  }

  async #installed(system) {
    const name = templateName(system.schema);
    await this.#create(name, "template1");
    const place = await this.#connect(name);
    await withProcesses([system.installer ?? system.worker], ([process]) =>
      process.call("install", { place: place.address, tasks: allTasks }),
    );
    await place.close();
  }

  #once(key, build) {
    const name = templateName(key);
    if (!this.#templates.has(key)) {
      this.#templates.set(
        key,
        build(name).then(
          () => name,
          (error) => {
            this.#templates.delete(key);
            throw error;
          },
        ),
      );
    }
    return this.#templates.get(key);
  }

  async #create(name, template) {
    await this.#drop(name);
    // Copying files flushes the template first, so the clone's pages are on disk before anything is measured.
    await this.#server.admin.query(`create database "${name}" template "${template}" strategy file_copy`);
  }

  #drop(name) {
    return this.#server.admin.query(`drop database if exists "${name}" with (force)`);
  }

  async #connect(name) {
    const connectionString = this.#server.urlOf(name);
    const pool = new pg.Pool({ connectionString, max: 2, application_name: "bench" });
    pool.on("error", () => undefined);
    const close = () => pool.end();
    return {
      database: name,
      /** What worker processes need to know to reach it. */
      address: { connectionString },
      // The mark keeps our own questions out of the statements counted.
      // Behind the first word: PostgreSQL 18 does not keep what precedes it.
      query: (text, values) => pool.query(text.replace(/^\s*\w+/, "$& /* bench */"), values),
      connect: () => pool.connect(),
      close,
      drop: async () => {
        await close();
        await this.#drop(name);
      },
    };
  }
}

function templateName(key) {
  return `bench_t_${createHash("sha1").update(key).digest("hex").slice(0, 12)}`;
}
