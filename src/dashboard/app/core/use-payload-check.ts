import { useEffect, useRef, useState } from "preact/hooks";
import type { PayloadCheck, PayloadForm, PayloadProblem } from "../../contract.ts";
import { post, read } from "./api.ts";

const restMs = 300;

/** What the server knows of the payloads of the task that is being typed. */
export function usePayloadForm(task: string): PayloadForm | undefined {
  const [form, setForm] = useState<PayloadForm>();
  useEffect(() => {
    if (task === "") return;
    const left = new AbortController();
    const timer = setTimeout(() => {
      read("form", { task }, left.signal).then(setForm, () => undefined);
    }, restMs / 2);
    return () => {
      clearTimeout(timer);
      left.abort();
    };
  }, [task]);
  return form?.task === task ? form : undefined;
}

interface Asked {
  readonly task: string;
  readonly payload: unknown;
  readonly copyOf: string | undefined;
}

export interface PayloadChecking {
  readonly problems: readonly PayloadProblem[];
  /** Asks at once; true if the payload may be added. */
  check(): Promise<boolean>;
}

/** Has the server check a payload while it is typed, from the first change on. */
export function usePayloadCheck(asked: Asked, isWanted: boolean): PayloadChecking {
  const [problems, setProblems] = useState<readonly PayloadProblem[]>([]);
  const latest = useRef(0);
  const check = async (): Promise<boolean> => {
    const turn = ++latest.current;
    const { issues } = await post<PayloadCheck>("check", asked);
    if (turn === latest.current) setProblems(issues);
    return issues.length === 0;
  };
  const said = JSON.stringify(asked);
  useEffect(() => {
    if (!isWanted) return setProblems([]);
    // What cannot be asked now is asked when the job is added.
    const timer = setTimeout(() => void check().catch(() => undefined), restMs);
    return () => clearTimeout(timer);
  }, [said, isWanted]);
  return { problems, check };
}
