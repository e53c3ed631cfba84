import type { ComponentChildren, JSX } from "preact";
import { useNow } from "../core/clock.ts";
import { formatDuration } from "../core/format.ts";
import type { Live } from "../core/use-live.ts";
import { Button } from "./button.tsx";
import { Icon, type IconName } from "./icon.tsx";
import { TableSkeleton } from "./table.tsx";

interface FrameProps<Data> {
  readonly live: Live<Data>;
  readonly skeleton?: ComponentChildren;
  readonly children: (data: Data) => ComponentChildren;
}

/** Shows a page's data; its shape while it is loaded; and the last good data with its age if there is nothing newer. */
export function Frame<Data>({ live, skeleton = <TableSkeleton />, children }: FrameProps<Data>): JSX.Element {
  const { data, error, at, reload } = live;
  if (error?.code === "sign-in") {
    return (
      <Empty icon="lock" title="You are signed out.">
        <Button look="primary" onClick={() => window.location.reload()}>
          Sign in again
        </Button>
      </Empty>
    );
  }
  if (data === undefined && error) {
    return (
      <Empty icon="warning" title={error.message}>
        <Button icon="retry" onClick={reload}>
          Try again
        </Button>
      </Empty>
    );
  }
  return (
    <>
      {error && <Stale message={error.message} at={at} onRetry={reload} />}
      {data === undefined ? skeleton : children(data)}
    </>
  );
}

function Stale({ message, at, onRetry }: { message: string; at: number; onRetry: () => void }): JSX.Element {
  useNow();
  const age = formatDuration(Math.max(1_000, Math.floor((Date.now() - at) / 1_000) * 1_000));
  return (
    <div class="banner is-warn" role="alert">
      <Icon name="warning" />
      <span class="grow">
        {message} What you see is {age} old.
      </span>
      <Button small onClick={onRetry}>
        Try again
      </Button>
    </div>
  );
}

interface EmptyProps {
  readonly icon?: IconName;
  readonly title: string;
  readonly children?: ComponentChildren;
}

/** Says that there is nothing, and what to do about it. */
export function Empty({ icon = "list", title, children }: EmptyProps): JSX.Element {
  return (
    <div class="empty">
      <Icon name={icon} />
      <strong>{title}</strong>
      {children}
    </div>
  );
}
