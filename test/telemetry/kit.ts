import { context, propagation, trace } from "@opentelemetry/api";
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  type ReadableSpan,
  SimpleSpanProcessor,
  type SpanProcessor,
} from "@opentelemetry/sdk-trace-node";
import { onTestFinished } from "vitest";

/** Sets up tracing as an application would, and forgets it when the test is over. */
export function setUpTracing(processor?: SpanProcessor): {
  spans: () => ReadableSpan[];
  named: (name: string) => ReadableSpan;
} {
  const exporter = new InMemorySpanExporter();
  const provider = new NodeTracerProvider({ spanProcessors: [processor ?? new SimpleSpanProcessor(exporter)] });
  provider.register();
  onTestFinished(async () => {
    await provider.shutdown();
    trace.disable();
    context.disable();
    propagation.disable();
  });
  const spans = (): ReadableSpan[] => exporter.getFinishedSpans();
  return {
    spans,
    named: (name) => {
      const span = spans().find((each) => each.name === name);
      if (!span)
        throw new Error(
          `There is no span '${name}' among ${spans()
            .map((each) => each.name)
            .join(", ")}`,
        );
      return span;
    },
  };
}
