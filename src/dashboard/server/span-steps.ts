import type { Span } from "../contract.ts";

const minute = 60_000;

/** How far a page looks back, and in which steps: as finely as times are kept. */
export const spanSteps: Readonly<Record<Span, { readonly sinceMs: number; readonly stepMs: number }>> = {
  "15m": { sinceMs: 15 * minute, stepMs: minute },
  "1h": { sinceMs: 60 * minute, stepMs: minute },
  "3h": { sinceMs: 180 * minute, stepMs: 3 * minute },
  "1d": { sinceMs: 1_440 * minute, stepMs: 60 * minute },
  "3d": { sinceMs: 3 * 1_440 * minute, stepMs: 60 * minute },
  "30d": { sinceMs: 30 * 1_440 * minute, stepMs: 1_440 * minute },
};
