import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { JobActionName, JobDetails, RescheduleChange } from "../../contract.ts";
import { address, go } from "../core/router.tsx";
import { useCan } from "../core/session.ts";
import { useAction } from "../core/use-action.ts";
import type { Details } from "./action-details.tsx";
import { ActionDialog } from "./action-dialog.tsx";
import { actionWords } from "./action-words.ts";
import { Button } from "./button.tsx";
import { Menu, type MenuItem } from "./menu.tsx";
import { PriorityDialog } from "./priority-dialog.tsx";

const shownButtons = 3;
/** Done at once: they can be taken back or do no harm. */
const atOnce: readonly JobActionName[] = ["retry", "runNow"];

/** What can be done with a job as it is now. */
export function JobActions({ job, reload }: { readonly job: JobDetails; readonly reload: () => void }): JSX.Element {
  const can = useCan();
  const { run, isBusy } = useAction(reload);
  const [asked, setAsked] = useState<JobActionName>();
  const [isPriority, setPriority] = useState(false);
  const allowed = job.actions.filter((action) => can(action));
  const ids = [job.id];

  const act = (action: JobActionName, details: Details): void => {
    const before = scheduleOf(job);
    const undo =
      (action === "runNow" || action === "reschedule") && before
        ? () => void run("reschedule", { ids, ...before })
        : undefined;
    void run(action, { ids, ...details }, { undo });
  };
  const choose = (action: JobActionName): void => {
    if (atOnce.includes(action)) act(action, {});
    else setAsked(action);
  };
  const items: MenuItem[] = allowed.slice(shownButtons).map((action) => ({
    label: actionWords[action].name,
    icon: actionWords[action].icon,
    isDanger: actionWords[action].isDanger ?? false,
    onSelect: () => choose(action),
  }));
  if (allowed.includes("reschedule") && job.details) {
    items.push({ label: "Change priority …", icon: "flag", onSelect: () => setPriority(true) });
  }
  if (can("add") && job.task !== null && job.payload !== undefined) {
    items.push({ label: "Duplicate …", icon: "copy", onSelect: () => go(address("/jobs/new", { copyOf: job.id })) });
  }
  return (
    <div class="action-bar" role="group" aria-label="Actions">
      {allowed.slice(0, shownButtons).map((action) => (
        <Button key={action} icon={actionWords[action].icon} disabled={isBusy} onClick={() => choose(action)}>
          {actionWords[action].name}
        </Button>
      ))}
      {items.length > 0 && <Menu label="More actions" items={items} />}
      {isPriority && job.details && (
        <PriorityDialog
          id={job.id}
          priority={job.details.priority}
          onRun={(priority) => act("reschedule", { priority })}
          onClose={() => setPriority(false)}
        />
      )}
      {asked && (
        <ActionDialog
          action={asked}
          count={1}
          target={`Job #${job.id}${job.task === null ? "" : ` of task ${job.task}`}`}
          start={asked === "reschedule" ? (scheduleOf(job) ?? {}) : {}}
          onRun={(details) => act(asked, details)}
          onClose={() => setAsked(undefined)}
        />
      )}
    </div>
  );
}

function scheduleOf({ details }: JobDetails): RescheduleChange | undefined {
  return details ? { runAt: details.runAt, priority: details.priority, maxAttempts: details.maxAttempts } : undefined;
}
