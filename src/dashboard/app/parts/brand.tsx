import type { JSX } from "preact";

/** The elephant. */
export function Mark(): JSX.Element {
  return (
    <svg viewBox="0 0 64 64" fill="none" stroke-linejoin="round" stroke-linecap="round" aria-hidden="true">
      <path
        fill="#3b6ea5"
        d="M10 30c0-11 9-19 21-19 13 0 23 9 23 22v17c0 2-1 3-3 3h-5c-2 0-3-1-3-3v-8H27v8c0 2-1 3-3 3h-5c-2 0-3-1-3-3V40c-4-2-6-6-6-10z"
      />
      <path fill="#2c5683" d="M24 16c8 0 13 6 13 13s-5 11-10 11-9-4-9-9 2-7 2-10 1-5 4-5z" />
      <path stroke="#3b6ea5" stroke-width="6" d="M14 32c-4 3-7 8-6 14 1 4 5 5 8 3" />
      <circle cx="17" cy="26" r="2" fill="#fff" />
    </svg>
  );
}
