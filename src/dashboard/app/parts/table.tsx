import type { ComponentChildren, HTMLAttributes, JSX } from "preact";

export interface Column<Row> {
  readonly head: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** Shown instead of the head's text. */
  readonly headCell?: () => ComponentChildren;
  /** Right-aligned figures. */
  readonly isNumber?: boolean;
  readonly className?: string;
  /** On a narrow screen a row is a card: its title, a labelled line (the default), or left out. */
  readonly narrow?: "title" | "hide" | "bare";
}

interface TableProps<Row> {
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
  /** Extra attributes of a row: selection, the keyboard's cursor. */
  readonly rowProps?: (row: Row, index: number) => HTMLAttributes<HTMLTableRowElement>;
}

export function Table<Row>({ label, columns, rows, keyOf, rowProps }: TableProps<Row>): JSX.Element {
  const classOf = ({ isNumber, className, narrow }: Column<Row>): string =>
    [isNumber && "number", className, narrow && `narrow-${narrow}`].filter(Boolean).join(" ");
  return (
    <div class="table-scroll">
      <table class="table">
        <caption class="off-screen">{label}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.head} scope="col" class={classOf(column)}>
                {column.headCell ? column.headCell() : headOf(column.head)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={keyOf(row)} {...rowProps?.(row, index)}>
              {columns.map((column) => (
                <td
                  key={column.head}
                  class={classOf(column)}
                  data-label={column.head.startsWith("·") ? "" : column.head}
                >
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** A head that begins with a dot is only read out. */
function headOf(text: string): ComponentChildren {
  return text.startsWith("·") ? <span class="off-screen">{text.slice(1)}</span> : text;
}

/** The shape of a table that is being loaded. */
export function TableSkeleton({ rows = 8 }: { readonly rows?: number }): JSX.Element {
  return (
    <div class="table-skeleton" role="status" aria-label="Loading">
      {Array.from({ length: rows }, (_, index) => (
        <div key={index} class="skeleton-row">
          <span class="skeleton" />
          <span class="skeleton" />
          <span class="skeleton" />
        </div>
      ))}
    </div>
  );
}
