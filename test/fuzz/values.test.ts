import fc from "fast-check";
import { expect, test, vi } from "vitest";
import { toNewJob } from "../../src/client/job-spec.ts";
import { forPreset } from "../../src/config/option.ts";
import { resolveSettings } from "../../src/config/settings.ts";
import { ConfigError, JobSpecError } from "../../src/errors.ts";
import { makeWorkerUtils, runOnce } from "../../src/index.ts";
import { allOptions } from "../../src/runner/runner-options.ts";
import { rememberingLogger } from "../support/log.ts";
import { sharedDatabase } from "../support/shared-database.ts";
import { anyValue, nastyString, seeded } from "./kit.ts";

vi.setConfig({ testTimeout: 180_000 });

const database = sharedDatabase();

const optionNames = Object.keys(forPreset(allOptions));
const options = fc.dictionary(fc.constantFrom(...optionNames), anyValue, { maxKeys: 3 });

test("any options become settings, or are refused by their names", () => {
  fc.assert(
    fc.property(options, (given) => {
      try {
        expect(resolveSettings(given, "/app").concurrentJobs).toBeLessThanOrEqual(100_000);
      } catch (error) {
        expect(error).toBeInstanceOf(ConfigError);
      }
    }),
    seeded(3_000),
  );
});

const spec = fc.dictionary(
  fc.oneof(
    fc.constantFrom("queueName", "runAt", "priority", "maxAttempts", "jobKey", "jobKeyMode", "flags"),
    nastyString,
  ),
  anyValue,
  { maxKeys: 3 },
);

test("any job is made ready for the database, or refused in words", () => {
  fc.assert(
    fc.property(anyValue, anyValue, spec, (identifier, payload, given) => {
      try {
        const job = toNewJob(identifier as string, payload, given, false);
        if (job.payload !== null) JSON.parse(job.payload);
      } catch (error) {
        expect(error).toBeInstanceOf(JobSpecError);
      }
    }),
    seeded(3_000),
  );
});

test("any payload reaches the task as JSON has it", async () => {
  const { logger } = rememberingLogger();
  const utils = await makeWorkerUtils({ connectionString: database().url, logger });
  try {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.jsonValue({ stringUnit: "binary", maxDepth: 4 }), { minLength: 1, maxLength: 60 }),
        async (payloads) => {
          const jobs = await utils.addJobs(payloads.map((payload) => ({ identifier: "echo", payload })));
          const got = new Map<string, unknown>();
          const taskList = {
            echo: (payload: unknown, { job }: { job: { id: string } }) => {
              got.set(job.id, payload);
            },
          };
          await runOnce({ connectionString: database().url, logger, taskList, concurrency: 10, noHandleSignals: true });
          // What JSON cannot tell apart is the same; no payload is an empty one.
          expect(jobs.map(({ id }) => got.get(id))).toEqual(
            payloads.map((payload) => JSON.parse(JSON.stringify(payload ?? {}))),
          );
        },
      ),
      seeded(12),
    );
  } finally {
    await utils.release();
  }
});
