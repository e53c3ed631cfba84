import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { type JobActionName, type JobQuery, type JobRow, jobActionNames } from "../../contract.ts";
import { formatNumber, plural } from "../core/format.ts";
import { useCan } from "../core/session.ts";
import { useAction } from "../core/use-action.ts";
import type { Details } from "./action-details.tsx";
import { ActionDialog } from "./action-dialog.tsx";
import { actionWords } from "./action-words.ts";
import { BulkDialog } from "./bulk-dialog.tsx";
import { Button } from "./button.tsx";
import { Menu } from "./menu.tsx";

interface BulkBarProps {
  /** Those that are selected. */
  readonly jobs: readonly JobRow[];
  readonly query: JobQuery;
  /** There are jobs that match and are not shown. */
  readonly hasMore: boolean;
  /** All that are shown are selected. */
  readonly isWhole: boolean;
  readonly onDone: () => void;
  readonly onClear: () => void;
  readonly onSelectShown: () => void;
}

const shownButtons = 3;

/** What can be done with the selected jobs, or with all that match. */
export function BulkBar({
  jobs,
  query,
  hasMore,
  isWhole,
  onDone,
  onClear,
  onSelectShown,
}: BulkBarProps): JSX.Element | null {
  const can = useCan();
  const { run } = useAction(onDone);
  const [asked, setAsked] = useState<{ readonly action: JobActionName; readonly isAll: boolean }>();
  const canTakeAll = isWhole && hasMore;
  const [isAllAsked, setAll] = useState(false);
  const isAll = isAllAsked && canTakeAll;
  // Whoever takes a job out of the selection, or begins another one, means those that are selected.
  useEffect(() => {
    if (!canTakeAll) setAll(false);
  }, [canTakeAll]);
  const ask = (action: JobActionName): void => setAsked({ action, isAll });
  const allowed = jobActionNames.filter((action) => can(action));
  const count = jobs.length;
  if (allowed.length === 0) return null;

  const target = `The ${plural(count, "job")} that you selected${count <= 5 ? `: ${jobs.map(({ id }) => `#${id}`).join(", ")}` : ""}`;
  const act = async (action: JobActionName, details: Details): Promise<void> => {
    const result = await run(action, { ...details, ids: jobs.map(({ id }) => id) });
    if (result) onClear();
  };
  const dialog =
    asked &&
    (asked.isAll ? (
      <BulkDialog action={asked.action} query={query} onDone={onDone} onClose={() => setAsked(undefined)} />
    ) : (
      <ActionDialog
        action={asked.action}
        count={count}
        target={target}
        onRun={(details) => void act(asked.action, details)}
        onClose={() => setAsked(undefined)}
      />
    ));
  if (count === 0) return <>{dialog}</>;
  return (
    <>
      <div class="bulk" role="toolbar" aria-label="Selected jobs">
        <span>{isAll ? "All that match" : `${formatNumber(count)} selected`}</span>
        {!isWhole && (
          <Button look="link" onClick={onSelectShown}>
            Select all shown
          </Button>
        )}
        {canTakeAll && (
          <Button look="link" onClick={() => setAll(!isAll)}>
            {isAll ? `Only the ${formatNumber(count)} shown` : "Select all that match"}
          </Button>
        )}
        {allowed.slice(0, shownButtons).map((action) => (
          <Button key={action} small icon={actionWords[action].icon} onClick={() => ask(action)}>
            {actionWords[action].name}
          </Button>
        ))}
        {allowed.length > shownButtons && (
          <Menu
            label="More actions"
            items={allowed.slice(shownButtons).map((action) => ({
              label: actionWords[action].name,
              icon: actionWords[action].icon,
              isDanger: actionWords[action].isDanger ?? false,
              onSelect: () => ask(action),
            }))}
          />
        )}
        <Button look="quiet" small icon="close" label="Clear the selection" onClick={onClear} />
      </div>
      {dialog}
    </>
  );
}
