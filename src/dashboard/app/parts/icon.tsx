import type { JSX } from "preact";

/** Outlines on a grid of 16. Their shapes differ, so that no state depends on colour alone. */
const paths = {
  waiting: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11Z",
  scheduled: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11ZM8 5.2V8l2 1.4",
  running: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11ZM6.8 5.9v4.2L10.2 8 6.8 5.9Z",
  failed: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11ZM6.2 6.2l3.6 3.6M9.8 6.2 6.2 9.8",
  succeeded: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11ZM5.6 8.2l1.7 1.6 3-3.4",
  cancelled: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11ZM4.4 4.4l7.2 7.2",
  snoozed: "M13 9.4A5.4 5.4 0 1 1 6.6 3a4.3 4.3 0 0 0 6.4 6.4Z",
  paused: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11ZM6.7 6v4M9.3 6v4",
  unknown: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11ZM6.5 6.6a1.5 1.5 0 1 1 2.2 1.3c-.5.3-.7.6-.7 1.1M8 10.9v.1",
  warning: "M8 2.6 14 13H2L8 2.6ZM8 6.6v3M8 11.2v.1",
  search: "M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9ZM10.3 10.3l3.2 3.2",
  plus: "M8 3.5v9M3.5 8h9",
  close: "M4 4l8 8M12 4l-8 8",
  more: "M3.5 8h.1M8 8h.1M12.5 8h.1",
  chevron: "M6 4l4 4-4 4",
  down: "M4 6l4 4 4-4",
  copy: "M5.5 5.5h7v7h-7zM10.5 5.5v-2h-7v7h2",
  retry: "M13 8a5 5 0 1 1-1.5-3.6M13 2.5v3h-3",
  play: "M5 3.5v9L12.5 8 5 3.5Z",
  calendar: "M3 4.5h10v8.5H3zM3 7.2h10M5.7 3v2.4M10.3 3v2.4",
  flag: "M4 14V3h7.5l-1.6 2.6L11.5 8.2H4",
  stop: "M4.5 4.5h7v7h-7z",
  bin: "M3 4.5h10M6.3 4.5V3h3.4v1.5M4.5 4.5l.6 8.5h5.8l.6-8.5M6.8 7v3.7M9.2 7v3.7",
  pencil: "M3 13l.7-3 6.8-6.8 2.3 2.3L6 12.3 3 13Z",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  drain: "M3 3h10L9.5 8v4.5L6.5 14V8L3 3Z",
  sun: "M8 5.2a2.8 2.8 0 1 1 0 5.6 2.8 2.8 0 0 1 0-5.6ZM8 1.5v1.3M8 13.2v1.3M1.5 8h1.3M13.2 8h1.3M3.4 3.4l.9.9M11.7 11.7l.9.9M12.6 3.4l-.9.9M4.3 11.7l-.9.9",
  moon: "M13 9.4A5.4 5.4 0 1 1 6.6 3a4.3 4.3 0 0 0 6.4 6.4Z",
  half: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11ZM8 2.5v11M8 5h3.2M8 8h5M8 11h3.2",
  home: "M2.5 9.5 5.5 6l2.5 2.5 5-5.5M10 3h3v3M2.5 13.5h11",
  list: "M5.5 4.5h8M5.5 8h8M5.5 11.5h8M2.5 4.5h.1M2.5 8h.1M2.5 11.5h.1",
  code: "M5.5 5 2.5 8l3 3M10.5 5l3 3-3 3",
  queue: "M2.5 4h11M2.5 8h8M2.5 12h5",
  server: "M2.5 3h11v4.2h-11zM2.5 8.8h11V13h-11zM5 5.1h.1M5 10.9h.1",
  gauge: "M3.4 12.5a6 6 0 1 1 9.2 0M8 9.2l2.4-3",
  history: "M3 8a5 5 0 1 1 1.5 3.6M3 13.5v-3h3M8 5.2V8l2 1.4",
  person: "M8 2.8a2.6 2.6 0 1 1 0 5.2 2.6 2.6 0 0 1 0-5.2ZM3 13.5c.4-2.6 2.4-4 5-4s4.600 1.400 5 4",
  lock: "M4 7.500h8v6H4zM5.700 7.500V5.300a2.300 2.300 0 0 1 4.600 0v2.200",
  link: "M6.700 9.300l2.600-2.600M7.200 4.800l1.300-1.300a2.800 2.800 0 0 1 4 4l-1.300 1.300M8.800 11.200l-1.300 1.300a2.800 2.800 0 0 1-4-4l1.300-1.300",
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name }: { readonly name: IconName }): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  );
}
