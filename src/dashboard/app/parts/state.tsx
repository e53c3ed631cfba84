import type { JSX } from "preact";
import { Icon, type IconName } from "./icon.tsx";

interface Look {
  readonly icon: IconName;
  readonly label: string;
  readonly tone?: "active" | "bad" | "warn";
}

/** Every state and outcome that a job or an attempt may have. */
const looks: Readonly<Record<string, Look>> = {
  waiting: { icon: "waiting", label: "Ready" },
  scheduled: { icon: "scheduled", label: "Later" },
  running: { icon: "running", label: "Running", tone: "active" },
  dead: { icon: "failed", label: "Failed", tone: "bad" },
  paused: { icon: "paused", label: "Paused", tone: "warn" },
  succeeded: { icon: "succeeded", label: "Succeeded" },
  failed: { icon: "failed", label: "Failed, to be retried", tone: "warn" },
  permanentlyFailed: { icon: "failed", label: "Permanently failed", tone: "bad" },
  cancelled: { icon: "cancelled", label: "Cancelled" },
  snoozed: { icon: "snoozed", label: "Snoozed" },
  finished: { icon: "succeeded", label: "Finished" },
  alive: { icon: "succeeded", label: "Alive" },
  silent: { icon: "failed", label: "Silent", tone: "bad" },
  unknown: { icon: "unknown", label: "No heartbeats" },
};

export function lookOf(state: string): Look {
  return looks[state] ?? { icon: "unknown", label: state };
}

/** A state as shape and word; colour only underlines it. */
export function State({ of, label }: { readonly of: string; readonly label?: string | undefined }): JSX.Element {
  const look = lookOf(of);
  return (
    <span class="state" data-tone={look.tone}>
      <Icon name={look.icon} />
      {label ?? look.label}
    </span>
  );
}
