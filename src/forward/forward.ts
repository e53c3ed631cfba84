import { inspect } from "node:util";
import { ConfigError } from "../errors.ts";
import type { Forwarder } from "../forwarder.ts";
import type { Task, TaskHelpers } from "../task.ts";
import type { BackoffFunction, BackoffOptions } from "../task-options.ts";
import { suggestion } from "../util/nearest.ts";
import { expectWholeNumber } from "../util/whole-number.ts";
import { makeMessage } from "./message.ts";
import { Publisher } from "./publisher.ts";
import type { Publish, Target } from "./target.ts";

export interface ForwardOptions {
  /** Which jobs to send on: names of tasks, in which `*` stands for any characters. */
  readonly tasks: readonly string[];
  /** Where to: what `nats`, `rabbitmq`, `kafka` or `bullmq` gives, or a function that publishes a batch. */
  readonly to: Target | Publish;
  /** How many jobs may be on their way at once; 1000, if left out. */
  readonly maxInFlight?: number;
  /** How many messages are published at once; half of those on their way, if left out, so that the next batch is claimed meanwhile. */
  readonly maxBatch?: number;
  /** How long a refused message waits before it is sent again; 1 s, twice, four times… up to 5 minutes, if left out. */
  readonly backoff?: BackoffOptions | BackoffFunction;
}

const known = ["tasks", "to", "maxInFlight", "maxBatch", "backoff"];
const defaultBackoff: BackoffOptions = { type: "exponential", delay: "1s", maxDelay: "5m", jitter: 0.2 };

/** Sends jobs of these tasks on to another system, in batches. A job is done when the target has confirmed its message. */
export function forward(options: ForwardOptions): Forwarder {
  const { tasks, to, maxInFlight = 1_000, maxBatch = Math.ceil(maxInFlight / 2), backoff = defaultBackoff } = options;
  for (const key of Object.keys(options)) {
    if (!known.includes(key)) throw new ConfigError(`Unknown key '${key}' in forward().${suggestion(key, known)}`);
  }
  if (!Array.isArray(tasks) || tasks.length === 0 || tasks.some((name) => typeof name !== "string" || name === "")) {
    throw new ConfigError(`'tasks' of forward() must be an array of names such as ["mail/*"], got ${inspect(tasks)}.`);
  }
  const target: Target = typeof to === "function" ? { name: "The target", publish: to } : to;
  if (typeof target?.publish !== "function") {
    throw new ConfigError(
      `'to' of forward() must be a target such as nats({ client, subject }) or a function, got ${inspect(to, { depth: 0 })}.`,
    );
  }
  checkCount("maxInFlight", maxInFlight);
  checkCount("maxBatch", maxBatch);
  return {
    tasks,
    maxInFlight,
    taskOptions: { backoff },
    open({ schema, logger }) {
      const publisher = new Publisher({ target, maxBatch, logger });
      const send = async (_payload: unknown, helpers: TaskHelpers): Promise<void> => {
        const queueName = await helpers.getQueueName();
        await publisher.send(makeMessage(helpers.job, queueName, schema), () => helpers.abortSignal);
      };
      return { task: send as Task, close: () => publisher.close(), abandon: () => publisher.abandon() };
    },
  };
}

function checkCount(name: string, value: unknown): void {
  const expected = expectWholeNumber(value, 1, 100_000);
  if (expected) throw new ConfigError(`'${name}' of forward() must be ${expected}, got ${inspect(value)}.`);
}
