import type { JSX } from "preact";
import type { ErrorGroupRow, Span } from "../../contract.ts";
import { address, Link } from "../core/router.tsx";
import { Amount } from "./amount.tsx";
import { TaskLink } from "./links.tsx";
import { Spark } from "./spark.tsx";
import { Table } from "./table.tsx";
import { Ago } from "./time.tsx";

interface ErrorTableProps {
  readonly groups: readonly ErrorGroupRow[];
  readonly cursor?: number;
  /** How far back the groups look, for their links. */
  readonly span?: Span;
}

export function ErrorTable({ groups, cursor = -1, span }: ErrorTableProps): JSX.Element {
  return (
    <Table
      label="Errors"
      rows={groups}
      keyOf={({ fingerprint }) => fingerprint}
      rowProps={(_, index) => ({ class: index === cursor ? "is-cursor" : undefined })}
      columns={[
        {
          head: "Error",
          narrow: "title",
          className: "limited is-main",
          cell: (group) => (
            <>
              <Link
                class="name clip is-block"
                to={address(`/errors/${group.fingerprint}`, { span })}
                title={group.message}
              >
                {group.message}
              </Link>
              <span class="under">{group.errorClass}</span>
            </>
          ),
        },
        { head: "Task", cell: ({ task }) => <TaskLink task={task} /> },
        {
          head: "Over time",
          narrow: "hide",
          className: "tight",
          cell: (group) => <Spark values={group.spark} label="Failures" width={120} isBad />,
        },
        { head: "Failures", isNumber: true, cell: ({ count }) => <Amount of={count} /> },
        { head: "Jobs", isNumber: true, cell: ({ jobs }) => <Amount of={jobs} /> },
        { head: "First", isNumber: true, narrow: "hide", cell: ({ firstAt }) => <Ago at={firstAt} /> },
        { head: "Last", isNumber: true, cell: ({ lastAt }) => <Ago at={lastAt} /> },
      ]}
    />
  );
}
