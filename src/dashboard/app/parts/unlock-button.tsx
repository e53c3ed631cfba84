import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { WorkerRow } from "../../contract.ts";
import { plural } from "../core/format.ts";
import { useCan } from "../core/session.ts";
import { useAction } from "../core/use-action.ts";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";

/** Frees what a dead worker holds; offered for those that are not known to be alive. */
export function UnlockButton({
  worker,
  reload,
}: {
  readonly worker: WorkerRow;
  readonly reload: () => void;
}): JSX.Element | null {
  const can = useCan();
  const { run } = useAction(reload);
  const [isAsked, setAsked] = useState(false);
  if (!can("unlockWorker") || worker.jobs + worker.queues === 0) return null;
  const close = (): void => setAsked(false);
  return (
    <>
      <Button small icon="lock" label={`Free its jobs: ${worker.id}`} onClick={() => setAsked(true)}>
        Free its jobs
      </Button>
      {isAsked && (
        <Dialog
          title={`Free ${plural(worker.jobs, "job")} of ${worker.id}?`}
          onClose={close}
          onSubmit={() => {
            close();
            void run("unlockWorker", { worker: worker.id });
          }}
          foot={
            <>
              <Button onClick={close}>Leave them</Button>
              <Button type="submit" look="danger">
                Free {plural(worker.jobs, "job")}
              </Button>
            </>
          }
        >
          <p>
            Its jobs become ready and run again elsewhere. Do this only if its process is certainly dead: otherwise they
            run twice at the same time.
          </p>
        </Dialog>
      )}
    </>
  );
}
