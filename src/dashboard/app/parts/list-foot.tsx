import type { JSX } from "preact";
import { formatNumber, plural } from "../core/format.ts";
import type { List } from "../core/use-list.ts";
import { Button } from "./button.tsx";

/** How much of a list is shown, and the way to more of it. */
export function ListFoot<Row>({ list, noun }: { readonly list: List<Row>; readonly noun: string }): JSX.Element {
  const count = list.rows?.length ?? 0;
  return (
    <div class="list-foot" aria-live="polite">
      <span>
        {plural(count, noun)} shown
        {list.isLoading && list.lookedAt > 1_000 && `, looked at ${formatNumber(list.lookedAt)} so far`}
        {!list.hasMore && count > 0 && ", that is all"}
      </span>
      {list.hasMore && (
        <Button small disabled={list.isLoading} onClick={list.more}>
          {list.isLoading ? "Loading …" : "Show more"}
        </Button>
      )}
    </div>
  );
}

/** What came since; it does not push rows away until it is asked for. */
export function FreshRows<Row>({ list }: { readonly list: List<Row> }): JSX.Element {
  return (
    <div class="new-rows" aria-live="polite">
      {list.fresh > 0 && (
        <Button
          look="primary"
          onClick={() => {
            list.showFresh();
            window.scrollTo(0, 0);
          }}
        >
          {formatNumber(list.fresh)} new
        </Button>
      )}
    </div>
  );
}
