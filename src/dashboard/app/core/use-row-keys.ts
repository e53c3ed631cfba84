import { useEffect, useRef, useState } from "preact/hooks";
import { useKeys } from "./keyboard.ts";

interface RowKeys {
  readonly count: number;
  readonly open: (index: number) => void;
  readonly select?: (index: number) => void;
}

/** `j` and `k` move a cursor over the rows, Enter opens and `x` selects. */
export function useRowKeys({ count, open, select }: RowKeys): { readonly cursor: number } {
  const [cursor, setCursor] = useState(-1);
  const at = useRef(-1);
  const move = (step: number): void => {
    const from = at.current < count ? at.current : -1;
    at.current = Math.max(0, Math.min(count - 1, from + step));
    setCursor(at.current);
  };
  const withRow = (action: ((index: number) => void) | undefined): void => {
    if (at.current >= 0 && at.current < count) action?.(at.current);
  };
  useKeys({
    j: () => count > 0 && move(1),
    k: () => count > 0 && move(-1),
    Enter: () => withRow(open),
    x: () => withRow(select),
  });
  useEffect(() => {
    if (cursor >= 0) document.querySelector("tr.is-cursor")?.scrollIntoView({ block: "nearest" });
  }, [cursor]);
  return { cursor };
}
