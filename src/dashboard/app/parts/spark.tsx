import type { JSX } from "preact";
import { formatRate } from "../core/format.ts";

interface SparkProps {
  readonly values: readonly (number | null)[];
  readonly label: string;
  readonly width?: number;
  readonly height?: number;
  readonly isBad?: boolean;
}

/** A small column chart without axes; the tallest column is the largest value. */
export function Spark({ values, label, width = 96, height = 20, isBad = false }: SparkProps): JSX.Element | null {
  const most = Math.max(0, ...values.map((value) => value ?? 0));
  if (values.length === 0) return null;
  const step = width / values.length;
  const gap = step > 3 ? 1 : 0.5;
  return (
    <svg class="spark" width={width} height={height} role="img" aria-label={`${label}: at most ${formatRate(most)}`}>
      {values.map((value, index) => {
        const size = value && most > 0 ? Math.max(2, (value / most) * height) : value === null ? 0 : 1;
        return (
          <rect
            key={index}
            class={isBad && value ? "is-bad" : index === values.length - 1 ? "is-last" : undefined}
            x={index * step}
            y={height - size}
            width={Math.max(1, step - gap)}
            height={size}
            rx="1"
          />
        );
      })}
    </svg>
  );
}
