import { useEffect, useState } from "preact/hooks";
import { useKeys } from "./keyboard.ts";

interface RowKeys {
  readonly count: number;
  readonly open: (index: number) => void;
  readonly select?: (index: number) => void;
}

/** `j` and `k` move a cursor over the rows, Enter opens and `x` selects. */
export function useRowKeys({ count, open, select }: RowKeys): { readonly cursor: number } {
  const [cursor, setCursor] = useState(-1);
  const isOn = cursor >= 0 && cursor < count;
  const move = (step: number): void => setCursor(Math.max(0, Math.min(count - 1, (isOn ? cursor : -1) + step)));
  useKeys({
    j: () => count > 0 && move(1),
    k: () => count > 0 && move(-1),
    Enter: () => isOn && open(cursor),
    x: () => isOn && select?.(cursor),
  });
  useEffect(() => {
    if (isOn) document.querySelector("tr.is-cursor")?.scrollIntoView({ block: "nearest" });
  }, [cursor, isOn]);
  return { cursor };
}
