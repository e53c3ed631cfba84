import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { BulkRun, JobActionName, JobQuery } from "../../contract.ts";
import { formatNumber } from "../core/format.ts";
import { Link } from "../core/router.tsx";
import { useBulk } from "../core/use-bulk.ts";
import { ActionDetails, type Details, isComplete } from "./action-details.tsx";
import { actionWords, nameEffect } from "./action-words.ts";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";
import { Icon } from "./icon.tsx";

interface BulkDialogProps {
  readonly action: JobActionName;
  readonly query: JobQuery;
  readonly onDone: () => void;
  readonly onClose: () => void;
}

/** An action on all jobs that match: first the exact number, then progress, with a way to stop. */
export function BulkDialog({ action, query, onDone, onClose }: BulkDialogProps): JSX.Element {
  const { effect, isDanger, asks, name } = actionWords[action];
  const { preview, run, problem, start, stop } = useBulk(action, query);
  const [details, setDetails] = useState<Details>({});
  const isOver = run !== undefined && run.state !== "running";
  useEffect(() => {
    if (isOver) onDone();
  }, [isOver]);
  const isReady = preview?.isComplete === true && preview.count > 0 && isComplete(asks, details);
  const title = preview?.isComplete ? nameEffect(action, preview.count) : `${name} all that match`;

  return (
    <Dialog
      title={run ? title : `${title}?`}
      onClose={onClose}
      onSubmit={() => !run && isReady && start(details)}
      foot={
        run ? (
          <>
            {run.state === "running" && (
              <Button icon="stop" disabled={run.isStopping} onClick={stop}>
                {run.isStopping ? "Stopping …" : "Stop"}
              </Button>
            )}
            <Button look="primary" onClick={onClose}>
              {run.state === "running" ? "Go on in the background" : "Close"}
            </Button>
          </>
        ) : (
          <>
            <Button onClick={onClose}>Keep them as they are</Button>
            <Button type="submit" look={isDanger ? "danger" : "primary"} disabled={!isReady}>
              {preview?.isComplete ? title : "Counting …"}
            </Button>
          </>
        )
      }
    >
      {problem && (
        <div class="banner is-bad" role="alert">
          <Icon name="warning" />
          {problem}
        </div>
      )}
      {run ? (
        <Progress run={run} total={preview?.count ?? run.matched} />
      ) : (
        <>
          <p class="wrap" aria-live="polite">
            {preview ? (
              <>
                <strong>{formatNumber(preview.count)}</strong> {preview.isComplete ? "" : "so far: "}
                {preview.target}. <span class="soft">{effect} Jobs added from now on are left alone.</span>
              </>
            ) : (
              "Counting the jobs that match …"
            )}
          </p>
          <ActionDetails asks={asks} value={details} onChange={setDetails} />
        </>
      )}
    </Dialog>
  );
}

const stateWords: Readonly<Record<BulkRun["state"], string>> = {
  running: "Under way",
  done: "Done",
  stopped: "Stopped",
  failed: "Failed",
  interrupted: "Interrupted",
};

function Progress({ run, total }: { readonly run: BulkRun; readonly total: number }): JSX.Element {
  return (
    <div class="bulk-progress" role="status">
      <progress
        class="bar"
        max={Math.max(1, total)}
        value={run.state === "done" ? total || 1 : run.matched}
        aria-label="Progress"
      />
      <p>
        {stateWords[run.state]}: changed {formatNumber(run.changed)} of {formatNumber(Math.max(total, run.matched))}.{" "}
        {run.message && <span class="soft">{run.message}</span>}
      </p>
      <p class="faint">
        It goes on if you close this page; the <Link to="/audit">audit</Link> shows it.
      </p>
    </div>
  );
}
