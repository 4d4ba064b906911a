/** A line without axes: only the shape. NaN makes a gap. */

import { sparklinePath } from "./path";
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
