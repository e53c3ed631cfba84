import type { JSX } from "preact";
import { jobAddress, queueAddress, taskAddress } from "../core/addresses.ts";
import { Link } from "../core/router.tsx";

export function TaskLink({ task }: { readonly task: string }): JSX.Element {
  return (
    <Link class="name wrap" to={taskAddress(task)}>
      {task}
    </Link>
  );
}

export function JobLink({ id }: { readonly id: string }): JSX.Element {
  return (
    <Link class="mono" to={jobAddress(id)}>
      #{id}
    </Link>
  );
}

export function QueueLink({ queue }: { readonly queue: string }): JSX.Element {
  return (
    <Link class="wrap" to={queueAddress(queue)}>
      {queue}
    </Link>
  );
}
