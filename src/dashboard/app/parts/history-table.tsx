import type { JSX } from "preact";
import type { HistoryRow } from "../../contract.ts";
import { jobAddress } from "../core/addresses.ts";
import { Link } from "../core/router.tsx";
import { Duration } from "./amount.tsx";
import { State } from "./state.tsx";
import { type Column, Table } from "./table.tsx";
import { Ago } from "./time.tsx";

interface HistoryTableProps {
  readonly entries: readonly HistoryRow[];
  readonly cursor?: number;
  /** With the error of each. */
  readonly hasError?: boolean;
}

export function HistoryTable({ entries, cursor = -1, hasError = true }: HistoryTableProps): JSX.Element {
  const columns: Column<HistoryRow>[] = [
    {
      head: "Job",
      narrow: "title",
      cell: (entry) => (
        <span class="job-cell">
          <Link class="name wrap" to={jobAddress(entry.id)}>
            {entry.task} <span class="faint mono">#{entry.id}</span>
          </Link>
          {(entry.key !== null || entry.queue !== null) && (
            <span class="under wrap">
              {[entry.key, entry.queue === null ? null : `queue ${entry.queue}`]
                .filter((part) => part !== null)
                .join(" · ")}
            </span>
          )}
        </span>
      ),
    },
    { head: "Outcome", className: "tight", narrow: "bare", cell: ({ outcome }) => <State of={outcome} /> },
    {
      head: "Attempt",
      isNumber: true,
      cell: ({ attempt, maxAttempts }) => `${attempt}${maxAttempts === null ? "" : ` of ${maxAttempts}`}`,
    },
    { head: "Waited", isNumber: true, cell: ({ waitMs }) => <Duration ms={waitMs} /> },
    { head: "Ran", isNumber: true, cell: ({ runMs }) => <Duration ms={runMs} /> },
    { head: "Ended", isNumber: true, cell: ({ at }) => <Ago at={at} /> },
  ];
  const error: Column<HistoryRow> = {
    head: "Error",
    className: "limited clip",
    narrow: "bare",
    cell: (entry) =>
      entry.error === null ? null : entry.fingerprint === null ? (
        <span class="soft">{entry.error}</span>
      ) : (
        <Link class="soft" title={entry.error} to={`/errors/${entry.fingerprint}`}>
          {entry.error}
        </Link>
      ),
  };
  return (
    <Table
      label="Attempts"
      columns={hasError ? [...columns, error] : columns}
      rows={entries}
      keyOf={(entry) => `${entry.id} ${entry.attempt} ${entry.at}`}
      rowProps={(_, index) => ({ class: `is-four${index === cursor ? " is-cursor" : ""}` })}
    />
  );
}
