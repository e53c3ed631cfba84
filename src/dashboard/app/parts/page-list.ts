import type { IconName } from "./icon.tsx";

export interface PageLink {
  readonly name: string;
  readonly to: string;
  readonly icon: IconName;
  /** `g` and this key go there. */
  readonly key: string;
}

export const pages: readonly PageLink[] = [
  { name: "Overview", to: "/", icon: "home", key: "o" },
  { name: "Jobs", to: "/jobs", icon: "list", key: "j" },
  { name: "Errors", to: "/errors", icon: "failed", key: "e" },
  { name: "Tasks", to: "/tasks", icon: "code", key: "t" },
  { name: "Queues", to: "/queues", icon: "queue", key: "q" },
  { name: "Cron", to: "/cron", icon: "calendar", key: "c" },
  { name: "Workers", to: "/workers", icon: "server", key: "w" },
  { name: "Limits", to: "/limits", icon: "gauge", key: "l" },
  { name: "History", to: "/history", icon: "history", key: "h" },
  { name: "Audit", to: "/audit", icon: "person", key: "a" },
];

/** Those in a phone's bottom bar; the others are behind "More". */
export const mainPages: readonly PageLink[] = pages.filter(({ to }) =>
  ["/", "/jobs", "/errors", "/workers"].includes(to),
);
