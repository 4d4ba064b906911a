/**
 * Values missing at most this far apart are joined: what is sampled slower than the line
 * has places leaves such holes everywhere.
 */
const WIDEST_JOIN = 0.1;

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
  const parts: string[] = [];
  let last = Number.NEGATIVE_INFINITY;
  values.forEach((value, i) => {
    if (!Number.isFinite(value)) return;
    const joined = i - last <= Math.max(1, WIDEST_JOIN * values.length);
    last = i;
    const x = (i / (values.length - 1)) * widthPx;
    const share = flat ? 0.5 : (value - low) / spread;
    const y = heightPx - 2 - share * (heightPx - 4);
    parts.push(`${joined ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`);
  });
  return parts.join("");
}
