import { queueMicrotask } from "../util/timers.ts";
import { publishMade } from "./batch.ts";
import type { ForwardMessage } from "./message.ts";
import { acked, type PublishResult, resultOf, type Target } from "./target.ts";

/** The part of a `ConfirmChannel` of `amqplib` that is used. */
export interface RabbitChannel {
  publish(
    exchange: string,
    routingKey: string,
    content: Buffer,
    options: object,
    onConfirm: (error: unknown) => void,
  ): boolean;
  on(event: string, listener: (value: unknown) => void): unknown;
}

export interface RabbitOptions {
  /** What `connection.createConfirmChannel()` gives; or a function that makes one, which is called again when the channel has closed. */
  readonly channel: RabbitChannel | (() => Promise<RabbitChannel>);
  /** The exchange; the default one, which routes to the queue that is named like the key, if left out. */
  readonly exchange?: string;
  /** The routing key, or a function that chooses one for each message; the name of the task, if left out. */
  readonly routingKey?: string | ((message: ForwardMessage) => string);
}

interface OpenChannel {
  readonly channel: RabbitChannel;
  /** Ids of messages that came back because no queue takes them. The broker sends them back before it confirms. */
  readonly returned: Set<string>;
  isClosed: boolean;
  closeReason: unknown;
  readonly onClose: Set<() => void>;
}

/** RabbitMQ: each message is persistent, mandatory and confirmed. The broker drops no copies; consumers know them by `messageId`. */
export function rabbitmq({ channel: given, exchange = "", routingKey = ({ task }) => task }: RabbitOptions): Target {
  const keyOf = typeof routingKey === "function" ? routingKey : () => routingKey;
  let current: OpenChannel | undefined;
  const open = async (): Promise<OpenChannel> => {
    if (current && !(current.isClosed && typeof given === "function")) return current;
    current = watch(typeof given === "function" ? await given() : given);
    return current;
  };
  return {
    name: "RabbitMQ",
    async publish(batch) {
      const channel = await open();
      return publishMade(
        batch,
        (message) => ({ message, routingKey: keyOf(message) }),
        (made) =>
          Promise.all(made.map(({ message, routingKey }) => publishOne(channel, exchange, routingKey, message))),
      );
    },
  };
}

function watch(channel: RabbitChannel): OpenChannel {
  const open: OpenChannel = {
    channel,
    returned: new Set(),
    isClosed: false,
    closeReason: undefined,
    onClose: new Set(),
  };
  channel.on("return", (message) => {
    const { properties } = message as { properties: { messageId: string } };
    open.returned.add(properties.messageId);
  });
  channel.on("error", (error) => {
    open.closeReason = error;
  });
  channel.on("close", () => {
    open.isClosed = true;
    for (const tell of open.onClose) tell();
  });
  return open;
}

function publishOne(
  open: OpenChannel,
  exchange: string,
  routingKey: string,
  message: ForwardMessage,
): Promise<PublishResult> {
  const { id, body, headers, priority, task } = message;
  const options = {
    messageId: id,
    headers,
    type: task,
    contentType: "application/json",
    persistent: true,
    mandatory: true,
    // Higher numbers go first there, from 0 to 255.
    priority: Math.min(255, Math.max(0, -priority)),
  };
  return new Promise((resolve) => {
    const done = (result: PublishResult): void => {
      open.onClose.delete(onClose);
      resolve(result);
    };
    const onClose = (): void => done(resultOf("absent", open.closeReason ?? "the channel has closed"));
    if (open.isClosed) return onClose();
    open.onClose.add(onClose);
    try {
      open.channel.publish(exchange, routingKey, Buffer.from(body), options, (error) => {
        const isReturned = open.returned.delete(id);
        if (!error) done(isReturned ? resultOf("reject", `no queue takes the routing key '${routingKey}'`) : acked);
        // The client calls back before it tells that the channel has closed, which is no refusal.
        else queueMicrotask(() => (open.isClosed ? onClose() : done(resultOf("retry", error))));
      });
    } catch (error) {
      // The channel is closed, or about to be; or the routing key is none.
      done(resultOf(error instanceof TypeError ? "reject" : "absent", error));
    }
  });
}
