import { useCallback, useEffect, useRef, useState } from "preact/hooks";

interface ListPage<Row> {
  readonly rows: readonly Row[];
  readonly next: string | null;
  readonly lookedAt?: number;
}

interface ListOptions<Row> {
  /** What the list is of; another name starts over. */
  readonly name: string;
  /** The first page as it is now. */
  readonly first: ListPage<Row> | undefined;
  readonly keyOf: (row: Row) => string;
  /** Descending down the list. */
  readonly rankOf: (row: Row) => number;
  readonly fetchMore: (after: string) => Promise<ListPage<Row>>;
}

export interface List<Row> {
  readonly rows: readonly Row[] | undefined;
  readonly hasMore: boolean;
  readonly isLoading: boolean;
  readonly lookedAt: number;
  /** Rows that came since and are not shown yet. */
  readonly fresh: number;
  /** Rows that do not belong to the list any more, but stay where they are until it is refreshed. */
  readonly gone: ReadonlySet<string>;
  readonly showFresh: () => void;
  readonly more: () => void;
}

interface Shown<Row> extends ListPage<Row> {
  readonly name: string;
  readonly lookedAt: number;
}

const fullPage = 50;

/** A list that grows downwards page by page and collects what is new at its top: nothing moves under the pointer. */
export function useList<Row>({ name, first, keyOf, rankOf, fetchMore }: ListOptions<Row>): List<Row> {
  const [shown, setShown] = useState<Shown<Row>>();
  const [isLoading, setLoading] = useState(false);
  const [failed, setFailed] = useState(false);
  const current = useRef(name);
  current.current = name;
  const adopt = useCallback(() => {
    if (first) setShown({ name, ...first, lookedAt: first.lookedAt ?? 0 });
    setFailed(false);
  }, [name, first]);

  const mine = shown?.name === name ? shown : undefined;
  const byKey = new Map(first?.rows.map((row) => [keyOf(row), row]));
  const rows = mine?.rows.map((row) => byKey.get(keyOf(row)) ?? row);
  const known = new Set(rows?.map(keyOf));
  const lowest = rows?.length ? rankOf(rows.at(-1)!) : Number.NEGATIVE_INFINITY;
  const fresh = mine && first ? first.rows.filter((row) => !known.has(keyOf(row)) && rankOf(row) >= lowest).length : 0;

  const isUntouched = mine === undefined || (mine.rows.length === 0 && mine.next === null);
  useEffect(() => {
    if (isUntouched) adopt();
  }, [isUntouched, adopt]);

  const more = useCallback(async () => {
    if (!mine?.next || isLoading) return;
    setLoading(true);
    try {
      const page = await fetchMore(mine.next);
      if (current.current !== name) return;
      const added = page.rows.filter((row) => !known.has(keyOf(row)));
      setShown({
        name,
        rows: [...mine.rows, ...added],
        next: page.next,
        lookedAt: mine.lookedAt + (page.lookedAt ?? 0),
      });
    } catch {
      setFailed(true);
    } finally {
      setLoading(false);
    }
  }, [mine, isLoading, name]);

  // A search over millions comes in short pages.
  const isShort = mine !== undefined && mine.next !== null && mine.rows.length < fullPage && !failed;
  useEffect(() => {
    if (isShort && !isLoading && !document.hidden) void more();
  }, [isShort, isLoading, more]);

  useEffect(() => {
    let wasAway = false;
    const onScroll = (): void => {
      if (window.scrollY > 80) wasAway = true;
      else if (window.scrollY === 0 && wasAway && fresh > 0) adopt();
    };
    window.addEventListener("scroll", onScroll, { passive: true });
    return () => window.removeEventListener("scroll", onScroll);
  }, [fresh, adopt]);

  return {
    rows,
    hasMore: mine?.next != null,
    isLoading: isLoading || isShort,
    lookedAt: mine?.lookedAt ?? 0,
    fresh,
    gone: goneOf(rows ?? [], first, byKey, keyOf, rankOf),
    showFresh: adopt,
    more: () => {
      setFailed(false);
      void more();
    },
  };
}

/** Rows within the reach of the first page that it does not have. */
function goneOf<Row>(
  rows: readonly Row[],
  first: ListPage<Row> | undefined,
  byKey: ReadonlyMap<string, Row>,
  keyOf: (row: Row) => string,
  rankOf: (row: Row) => number,
): ReadonlySet<string> {
  if (!first) return new Set();
  const last = first.rows.at(-1);
  if (!last && first.next !== null) return new Set();
  const reach = first.next === null || !last ? Number.NEGATIVE_INFINITY : rankOf(last);
  return new Set(rows.filter((row) => rankOf(row) >= reach && !byKey.has(keyOf(row))).map(keyOf));
}
