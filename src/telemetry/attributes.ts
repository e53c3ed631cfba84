/** Names of OpenTelemetry's messaging conventions; the values are those of the Rust port, so that both show up together. */
export const attribute = {
  system: "messaging.system",
  operationName: "messaging.operation.name",
  operationType: "messaging.operation.type",
  destination: "messaging.destination.name",
  messageId: "messaging.message.id",
  batchCount: "messaging.batch.message_count",
  clientId: "messaging.client.id",
  errorType: "error.type",
  attempt: "hathi.job.attempt",
} as const;

export const system = "graphile-worker";
