import type * as Adapters from "../../src/forward/index.ts";

export function connectTarget(
  adapters: typeof Adapters,
  broker: string,
  port: number,
  choose?: (message: Adapters.ForwardMessage) => unknown,
): Promise<Adapters.Target>;
