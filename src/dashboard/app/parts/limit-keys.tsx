import type { JSX } from "preact";
import { type LimitInfo, type LimitKey, redactedText } from "../../contract.ts";
import { formatNumber } from "../core/format.ts";
import { useCan } from "../core/session.ts";
import { Button } from "./button.tsx";
import { Table } from "./table.tsx";

export function nameOfKey(key: string): string {
  return key === "" ? "jobs without a key" : key;
}

interface LimitKeysProps {
  readonly limit: LimitInfo;
  readonly onChange: (own: LimitKey) => void;
  readonly onClear: (own: LimitKey) => void;
}

/** The keys that have values of their own. */
export function LimitKeys({ limit, onChange, onClear }: LimitKeysProps): JSX.Element {
  const can = useCan();
  const isNamed = ({ key }: LimitKey): boolean => key !== redactedText;
  return (
    <Table
      label={`Keys of ${limit.name}`}
      rows={limit.keys}
      // Hidden keys all read alike.
      keyOf={(own) => String(limit.keys.indexOf(own))}
      columns={[
        {
          head: limit.path.join("."),
          narrow: "title",
          cell: ({ key }) => <span class="mono wrap">{nameOfKey(key)}</span>,
        },
        { head: "Limit", isNumber: true, cell: (own) => amount(own.limit ?? limit.limit) },
        { head: "In a turn", isNumber: true, cell: (own) => amount(own.weight ?? limit.weight) },
        {
          head: "·Actions",
          className: "buttons",
          cell: (own) => (
            <>
              {isNamed(own) && can("clearLimit") && (
                <Button small onClick={() => onClear(own)} label={`Take back the limit of ${nameOfKey(own.key)}`}>
                  Take back
                </Button>
              )}
              {isNamed(own) && can("setLimit") && (
                <Button small onClick={() => onChange(own)} label={`Change the limit of ${nameOfKey(own.key)}`}>
                  Change
                </Button>
              )}
            </>
          ),
        },
      ]}
    />
  );
}

function amount(value: number | null): JSX.Element | string {
  return value === null ? <span class="faint">–</span> : formatNumber(value);
}
