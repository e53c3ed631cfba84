import { address } from "./router.tsx";

/** Names may have slashes, which stay readable, and anything else, which is encoded. */
export function taskAddress(task: string): string {
  return `/tasks/${task.split("/").map(encodeURIComponent).join("/")}`;
}

export function jobAddress(id: string): string {
  return `/jobs/${encodeURIComponent(id)}`;
}

export function queueAddress(queue: string): string {
  return address("/jobs", { queue });
}

/** Addresses in answers are relative to the dashboard. */
export function pageAddress(link: string): string {
  return `/${link.replace(/^\/+/, "")}`;
}
