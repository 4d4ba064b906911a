/** NaN makes a gap. */

import "./sparkline.css";

const WIDTH = 120;
const HEIGHT = 28;

export function Sparkline({
  values,
  label,
}: {
  readonly values: Float64Array;
  readonly label: string;
}) {
  const path = sparklinePath(values, WIDTH, HEIGHT);
  if (path === "") return null;
  return (
    <svg
      class="sparkline"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <path d={path} />
    </svg>
  );
}

/** Gaps up to this many times the usual one, or this share of the line, are joined. */
const USUAL_HOLES = 3;
const WIDEST_JOIN = 0.1;

/** Over the values' own range, with a margin of 2 px. */
export function sparklinePath(
  values: Float64Array,
  widthPx: number,
  heightPx: number,
): string {
  const valueAt = (i: number): number => values[i] ?? NaN;
  const indices = [...values.keys()].filter((i) => Number.isFinite(valueAt(i)));
  if (indices.length < 2) return "";
  const low = indices.reduce((least, i) => Math.min(least, valueAt(i)), Infinity);
  const high = indices.reduce((most, i) => Math.max(most, valueAt(i)), -Infinity);
  const steps = indices.map((i, n) => i - (indices[n - 1] ?? -Infinity));
  const sorted = steps.slice(1).sort((a, b) => a - b);
  const usual = sorted[Math.floor(sorted.length / 2)] ?? 1;
  const join = Math.max(
    usual > 1 ? USUAL_HOLES * usual : 1,
    WIDEST_JOIN * values.length,
  );
  const parts = indices.map((i, n) => {
    const x = (i / (values.length - 1)) * widthPx;
    const share = high === low ? 0.5 : (valueAt(i) - low) / (high - low);
    const y = heightPx - 2 - share * (heightPx - 4);
    return `${(steps[n] ?? 0) <= join ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
  });
  return parts.join("");
}
