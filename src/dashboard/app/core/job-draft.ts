import type { JobDetails, NewJob } from "../../contract.ts";
import { momentOf } from "../parts/field.tsx";
import { messageOf } from "./api.ts";

/** A new job as its form has it. */
export interface Draft {
  readonly task: string;
  readonly payload: string;
  readonly queue: string;
  readonly key: string;
  readonly keyMode: string;
  readonly runAt: string;
  readonly priority: string;
  readonly maxAttempts: string;
  readonly flags: string;
}

export const emptyDraft: Draft = {
  task: "",
  payload: "{}",
  queue: "",
  key: "",
  keyMode: "",
  runAt: "",
  priority: "",
  maxAttempts: "",
  flags: "",
};

/** A copy to edit; its key stays with the original, which it would replace. */
export function draftOf({ task, payload, queue, details }: JobDetails): Draft {
  return {
    ...emptyDraft,
    task: task ?? "",
    payload: JSON.stringify(payload ?? {}, null, 2),
    queue: queue ?? "",
    priority: details ? String(details.priority) : "",
    maxAttempts: details ? String(details.maxAttempts) : "",
    flags: details?.flags.join(", ") ?? "",
  };
}

export function parsePayload(text: string): { readonly value?: unknown; readonly problem?: string } {
  if (text.trim() === "") return {};
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    return { problem: `This is not JSON: ${messageOf(error)}` };
  }
}

export function newJobOf(draft: Draft, payload: unknown, copyOf: string | undefined): NewJob {
  const number = (text: string): number | undefined => (text.trim() === "" ? undefined : Number(text));
  const flags = draft.flags
    .split(",")
    .map((flag) => flag.trim())
    .filter((flag) => flag !== "");
  return {
    task: draft.task.trim(),
    payload,
    queue: draft.queue || undefined,
    key: draft.key || undefined,
    keyMode: draft.key && draft.keyMode ? (draft.keyMode as NonNullable<NewJob["keyMode"]>) : undefined,
    runAt: momentOf(draft.runAt),
    priority: number(draft.priority),
    maxAttempts: number(draft.maxAttempts),
    flags: flags.length > 0 ? flags : undefined,
    copyOf,
  };
}
