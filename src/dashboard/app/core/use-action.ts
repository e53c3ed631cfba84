import { useCallback, useState } from "preact/hooks";
import type { ActionBodies, ActionResult } from "../../contract.ts";
import { tell } from "../parts/toasts.tsx";
import { act, messageOf } from "./api.ts";

interface Options {
  readonly undo?: (() => void) | undefined;
}

type Run = <Name extends keyof ActionBodies>(
  name: Name,
  body: ActionBodies[Name],
  options?: Options,
) => Promise<ActionResult | undefined>;

/** Does an action, says how it ended, and has the page show its effect. */
export function useAction(reload: () => void): { readonly run: Run; readonly isBusy: boolean } {
  const [busy, setBusy] = useState(0);
  const run: Run = useCallback(
    async (name, body, { undo } = {}) => {
      setBusy((count) => count + 1);
      try {
        const result = await act(name, body);
        tell(result.message, { undo: result.changed > 0 ? undo : undefined, isBad: result.changed === 0 });
        reload();
        return result;
      } catch (error) {
        tell(messageOf(error), { isBad: true });
        return undefined;
      } finally {
        setBusy((count) => count - 1);
      }
    },
    [reload],
  );
  return { run, isBusy: busy > 0 };
}
