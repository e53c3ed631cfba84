import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { BulkPreview, BulkPreviewRequest, BulkRequest, BulkRun, JobActionName, JobQuery } from "../../contract.ts";
import type { Details } from "../parts/action-details.tsx";
import { messageOf, post, read } from "./api.ts";

const pollMs = 500;

export interface Bulk {
  readonly preview: BulkPreview | undefined;
  readonly run: BulkRun | undefined;
  readonly problem: string | undefined;
  readonly start: (details: Details) => void;
  readonly stop: () => void;
}

/** An action on all jobs that match: counted first, then done on the server in the background. */
export function useBulk(action: JobActionName, filter: JobQuery): Bulk {
  const [preview, setPreview] = useState<BulkPreview>();
  const [run, setRun] = useState<BulkRun>();
  const [problem, setProblem] = useState<string>();
  const isGone = useRef(false);

  useEffect(() => {
    isGone.current = false;
    const count = async (): Promise<void> => {
      let request: BulkPreviewRequest = { action, filter };
      for (;;) {
        const answer = await post<BulkPreview>("bulk/preview", request);
        if (isGone.current) return;
        setPreview(answer);
        if (answer.isComplete || answer.cursor === null) return;
        request = { action, filter, upTo: answer.upTo, cursor: answer.cursor, count: answer.count };
      }
    };
    count().catch((error: unknown) => setProblem(messageOf(error)));
    return () => {
      isGone.current = true;
    };
  }, []);

  const isRunning = run?.state === "running";
  useEffect(() => {
    if (!isRunning || !run) return;
    const timer = window.setTimeout(() => {
      read("bulk", { id: run.id }).then(setRun, (error: unknown) => setProblem(messageOf(error)));
    }, pollMs);
    return () => window.clearTimeout(timer);
  }, [run, isRunning]);

  const start = useCallback(
    (details: Details) => {
      if (!preview) return;
      const request: BulkRequest = { ...details, action, filter, upTo: preview.upTo };
      post<BulkRun>("bulk", request).then(setRun, (error: unknown) => setProblem(messageOf(error)));
    },
    [preview, action, filter],
  );
  const stop = useCallback(() => {
    if (run) post<BulkRun>("bulk/stop", { id: run.id }).then(setRun, (error: unknown) => setProblem(messageOf(error)));
  }, [run]);
  return { preview, run, problem, start, stop };
}
