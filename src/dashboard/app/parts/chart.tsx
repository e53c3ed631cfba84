import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { formatExact, formatMinute } from "../core/format.ts";
import { usePreference } from "../core/preferences.ts";
import { pointAt, useCrosshair } from "./crosshair.ts";
import { areaPath, linePath, roundUp, timeTicks } from "./scale.ts";

interface Line {
  readonly name: string;
  readonly values: readonly (number | null)[];
  readonly tone: 1 | 2 | 3 | 4;
  readonly dash?: "dashed" | "dotted";
  readonly isFilled?: boolean;
}

/** Something that happened, as a thin line. */
interface Mark {
  readonly at: number;
  /** Beside the line; null for none. */
  readonly name: string | null;
  readonly label: string;
}

interface ChartProps {
  readonly title: string;
  /** Starts of the points, in seconds since 1970. */
  readonly at: readonly number[];
  readonly lines: readonly Line[];
  readonly marks?: readonly Mark[];
  readonly format: (value: number) => string;
}

const height = 190;
const inset = { top: 10, right: 2, bottom: 22, left: 52 };

export function Chart({ title, at, lines, marks = [], format }: ChartProps): JSX.Element {
  const figure = useRef<HTMLElement>(null);
  const width = useWidth(figure);
  const zone = usePreference("zone");
  const pointed = useCrosshair();
  const from = at[0] ?? 0;
  const to = at.at(-1) ?? 1;
  const values = lines.flatMap((line) => line.values.filter((value) => value !== null));
  const top = roundUp(Math.max(0, ...values));
  const bottom = height - inset.bottom;
  const x = (moment: number): number =>
    inset.left + ((moment - from) / Math.max(1, to - from)) * (width - inset.left - inset.right);
  const y = (value: number): number => bottom - (value / top) * (bottom - inset.top);
  const xs = at.map(x);
  const index = pointed === undefined ? -1 : nearest(at, pointed);
  const isPointed = index >= 0;
  const offset = zone === "utc" ? 0 : -new Date(to * 1_000).getTimezoneOffset() * 60;
  const isLong = to - from > 2 * 86_400;
  const label = (moment: number): string =>
    isLong ? formatExact(new Date(moment * 1_000), zone).slice(5, 10) : formatMinute(moment * 1_000, zone);

  const marksAt = (pointedAt: number): string =>
    marks
      .filter((mark) => nearest(at, mark.at) === pointedAt)
      .map((mark) => mark.label)
      .join("; ");

  const onMove = (event: PointerEvent): void => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    const share = (event.clientX - box.left - inset.left) / (width - inset.left - inset.right);
    pointAt(from + Math.min(1, Math.max(0, share)) * (to - from));
  };

  return (
    <figure ref={figure}>
      <div class="chart-head">
        <h2>{title}</h2>
        {isPointed && <span class="faint mono">{label(at[index]!)}</span>}
        {isPointed && <span class="faint wrap">{marksAt(index)}</span>}
        <div class="legend">
          {lines.map((line) => {
            const value = isPointed ? line.values[index] : line.values.findLast((value) => value !== null);
            return (
              <span key={line.name}>
                <i class={`tone-${line.tone} ${line.dash ? `is-${line.dash}` : ""}`} />
                {line.name}
                <b>{value === null || value === undefined ? "–" : format(value)}</b>
              </span>
            );
          })}
        </div>
      </div>
      <svg
        class="chart"
        viewBox={`0 0 ${width} ${height}`}
        role="img"
        aria-label={describe(title, lines, marks, format)}
        onPointerMove={onMove}
        onPointerLeave={() => pointAt(undefined)}
      >
        {[0, 0.5, 1].map((share) => (
          <g key={share}>
            <line class="axis" x1={inset.left} x2={width} y1={y(top * share)} y2={y(top * share)} />
            <text x={inset.left - 8} y={y(top * share) + 4} text-anchor="end">
              {share === 0 ? "0" : format(top * share)}
            </text>
          </g>
        ))}
        {timeTicks(from, to, Math.max(2, Math.floor(width / 110)), offset).map((moment) => (
          <text key={moment} x={x(moment)} y={height - 5} text-anchor={anchor(x(moment), width)}>
            {label(moment)}
          </text>
        ))}
        {marks.map((mark, nth) => (
          <MarkLine key={nth} x={x(Math.min(to, mark.at))} width={width} top={inset.top} bottom={bottom} mark={mark} />
        ))}
        {isPointed && <line class="cross" x1={xs[index]} x2={xs[index]} y1={inset.top} y2={bottom} />}
        {lines.map((line) => {
          const ys = line.values.map((value) => (value === null ? null : y(value)));
          return (
            <g key={line.name} class={`tone-${line.tone}`}>
              {line.isFilled && <path class="fill" d={areaPath(xs, ys, bottom)} />}
              <path class={`line ${line.dash ? `is-${line.dash}` : ""}`} d={linePath(xs, ys)} />
              {isPointed && typeof ys[index] === "number" && <circle cx={xs[index]} cy={ys[index]} r="3.5" />}
            </g>
          );
        })}
      </svg>
    </figure>
  );
}

interface MarkLineProps {
  readonly x: number;
  readonly width: number;
  readonly top: number;
  readonly bottom: number;
  readonly mark: Mark;
}

function MarkLine({ x, width, top, bottom, mark }: MarkLineProps): JSX.Element {
  const isRight = x > width - 60;
  return (
    <g>
      <line class="mark" x1={x} x2={x} y1={top} y2={bottom} />
      {mark.name !== null && (
        <text x={isRight ? x - 4 : x + 4} y={top + 2} text-anchor={isRight ? "end" : "start"}>
          {mark.name.length > 12 ? `${mark.name.slice(0, 11)}…` : mark.name}
        </text>
      )}
    </g>
  );
}

function anchor(x: number, width: number): "start" | "middle" | "end" {
  if (x > width - 18) return "end";
  return x < inset.left + 4 ? "start" : "middle";
}

function nearest(at: readonly number[], moment: number): number {
  let best = -1;
  at.forEach((value, index) => {
    if (best < 0 || Math.abs(value - moment) < Math.abs(at[best]! - moment)) best = index;
  });
  return best;
}

/** What the picture says, for those who do not see it. */
function describe(
  title: string,
  lines: readonly Line[],
  marks: readonly Mark[],
  format: (value: number) => string,
): string {
  const parts = lines.map(({ name, values }) => {
    const known = values.filter((value) => value !== null);
    if (known.length === 0) return `${name}: nothing recorded`;
    return `${name}: now ${format(known.at(-1)!)}, at most ${format(Math.max(...known))}`;
  });
  return `${title}. ${[...parts, ...marks.map(({ label }) => label)].join("; ")}.`;
}

function useWidth(element: { readonly current: HTMLElement | null }): number {
  const [width, setWidth] = useState(640);
  useEffect(() => {
    const target = element.current;
    if (!target) return;
    const observer = new ResizeObserver(([entry]) => {
      if (entry && entry.contentRect.width > 0) setWidth(Math.round(entry.contentRect.width));
    });
    observer.observe(target);
    return () => observer.disconnect();
  }, [element]);
  return width;
}
