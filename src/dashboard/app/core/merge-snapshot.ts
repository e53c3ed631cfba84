import type { Series } from "../../contract.ts";

/** A streamed snapshot has only the last points of its series; the ones before come from the snapshot that it follows. */
export function mergeSnapshot(before: unknown, after: unknown): unknown {
  const old = seriesOf(before);
  const fresh = seriesOf(after);
  if (!old || !fresh || old.stepMs !== fresh.stepMs) return after;
  return { ...(after as object), series: mergeSeries(old, fresh) };
}

/** Points by their start; the newer value wins, and the span keeps its length. */
function mergeSeries(old: Series, fresh: Series): Series {
  const first = fresh.at[0];
  if (first === undefined) return old;
  const until = old.at.findIndex((at) => at >= first);
  const keep = until < 0 ? old.at.length : until;
  const length = Math.max(old.at.length, fresh.at.length);
  const join = <Value>(a: readonly Value[], b: readonly Value[]): readonly Value[] =>
    [...a.slice(0, keep), ...b].slice(-length);
  const columns = Object.entries(fresh).map(([name, values]) => {
    if (!Array.isArray(values)) return [name, values];
    return [name, join(old[name as "at"], values as number[])];
  });
  return Object.fromEntries(columns) as Series;
}

function seriesOf(snapshot: unknown): Series | undefined {
  return (snapshot as { series?: Series } | undefined)?.series;
}
