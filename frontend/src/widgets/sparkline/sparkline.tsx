/** A line without axes: only the shape. NaN makes a gap. */

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

/**
 * What is sampled slower than the line has places leaves holes everywhere: those up to
 * this many times the usual hole, or this share of the line, are joined.
 */
const USUAL_HOLES = 3;
const WIDEST_JOIN = 0.1;

function widestJoin(values: Float64Array): number {
  const steps: number[] = [];
  let last = -1;
  values.forEach((value, i) => {
    if (!Number.isFinite(value)) return;
    if (last >= 0) steps.push(i - last);
    last = i;
  });
  const usual = steps.sort((a, b) => a - b)[Math.floor(steps.length / 2)] ?? 1;
  const sparse = usual > 1 ? USUAL_HOLES * usual : 1;
  return Math.max(sparse, WIDEST_JOIN * values.length);
}

/** The SVG path of a sparkline over the values' own range, 2 px free above and below. */
export function sparklinePath(
  values: Float64Array,
  widthPx: number,
  heightPx: number,
): string {
  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  let numFinite = 0;
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    numFinite += 1;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (numFinite < 2) return "";
  const flat = high === low;
  const spread = flat ? 1 : high - low;
  const join = widestJoin(values);
  const parts: string[] = [];
  let last = Number.NEGATIVE_INFINITY;
  values.forEach((value, i) => {
    if (!Number.isFinite(value)) return;
    const joined = i - last <= join;
    last = i;
    const x = (i / (values.length - 1)) * widthPx;
    const share = flat ? 0.5 : (value - low) / spread;
    const y = heightPx - 2 - share * (heightPx - 4);
    parts.push(`${joined ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`);
  });
  return parts.join("");
}
