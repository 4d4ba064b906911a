import { useEffect, useRef } from "preact/hooks";
import { SIDES } from "../plot/axes";
import type { XRange } from "../plot/range";
import { fitted, useWidth } from "../plot/canvas";
import "./minimap.css";

export const MINIMAP_PX = 44;

export interface MinimapProps {
  /** Default: of a run. */
  readonly label?: string;
  /** On a context in CSS px; a new function draws again. */
  readonly draw: (context: CanvasRenderingContext2D, widthPx: number) => void;
  readonly tooltip?: (widthPx: number) => string;
  readonly extent: XRange;
  readonly range: XRange | null;
  readonly onRange: (range: XRange | null) => void;
  readonly leftPx?: number;
}

interface Grip {
  readonly part: BrushPart;
  readonly from: number;
  readonly range: XRange;
}

export function Minimap(props: MinimapProps) {
  const { draw, extent, range, onRange, leftPx = SIDES.left } = props;
  const { label = "The whole run; drag to choose the part that is shown" } = props;
  const root = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const grip = useRef<Grip | null>(null);
  const fullPx = useWidth(root);
  const widthPx = Math.max(0, fullPx - leftPx - SIDES.right);

  useEffect(() => {
    const context = widthPx < 1 ? null : fitted(canvas.current, widthPx, MINIMAP_PX);
    if (context !== null) draw(context, widthPx);
  }, [draw, widthPx]);

  const span = extent.high - extent.low || 1;
  const shown = range ?? extent;
  const share = (x: number): number =>
    Math.min(Math.max(((x - extent.low) / span) * 100, 0), 100);
  const [left, right] = [share(shown.low), share(shown.high)];

  function xAt(event: PointerEvent): number {
    const box = canvas.current?.getBoundingClientRect();
    if (box === undefined || box.width === 0) return extent.low;
    return extent.low + ((event.clientX - box.left) / box.width) * span;
  }

  function onDown(event: PointerEvent): void {
    if (event.button !== 0 || widthPx < 1) return;
    root.current?.setPointerCapture(event.pointerId);
    const from = xAt(event);
    const reach = (7 / widthPx) * span;
    const part = partAt(from, range, reach);
    grip.current = {
      part,
      from,
      range: part === "new" ? { low: from, high: from } : shown,
    };
  }

  function onMove(event: PointerEvent): void {
    const drag = grip.current;
    if (drag === null) return;
    onRange(brushAfter(drag.part, drag.range, xAt(event) - drag.from, extent));
  }

  return (
    <div
      ref={root}
      class="minimap"
      role="img"
      aria-label={label}
      title={widthPx < 1 ? "" : props.tooltip?.(widthPx)}
      onPointerDown={onDown}
      onPointerMove={onMove}
      onPointerUp={() => {
        grip.current = null;
      }}
      onPointerCancel={() => {
        grip.current = null;
      }}
      onDblClick={() => onRange(null)}
    >
      <div
        class="minimap-plot"
        style={{ marginLeft: `${leftPx}px`, width: `${widthPx}px` }}
      >
        <canvas ref={canvas} />
        <div class="minimap-shade" style={{ left: 0, width: `${left}%` }} />
        <div class="minimap-shade" style={{ left: `${right}%`, right: 0 }} />
        <div
          class={range === null ? "minimap-brush" : "minimap-brush is-part"}
          style={{ left: `${left}%`, width: `${Math.max(right - left, 0.2)}%` }}
        />
      </div>
    </div>
  );
}

type BrushPart = "low" | "high" | "middle" | "new";

/** `reach`: width of an edge in units of x. */
export function partAt(x: number, range: XRange | null, reach: number): BrushPart {
  if (range === null) return "new";
  // On a narrow brush the nearer edge wins; its middle third moves it.
  const edge = Math.min(reach, (range.high - range.low) / 3 + reach / 3);
  const [toLow, toHigh] = [Math.abs(x - range.low), Math.abs(x - range.high)];
  if (toLow <= edge && toLow <= toHigh) return "low";
  if (toHigh <= edge) return "high";
  return x > range.low && x < range.high ? "middle" : "new";
}

/** null: everything. */
export function brushAfter(
  part: BrushPart,
  range: XRange,
  by: number,
  extent: XRange,
): XRange | null {
  const least = (extent.high - extent.low) / 2000;
  let { low, high } = range;
  if (part === "middle") {
    const move = Math.min(Math.max(by, extent.low - low), extent.high - high);
    return { low: low + move, high: high + move };
  }
  if (part === "low") low += by;
  else if (part === "high" || by >= 0) high += by;
  else low += by;
  if (low > high) [low, high] = [high, low];
  low = Math.max(low, extent.low);
  high = Math.min(Math.max(high, low + least), extent.high);
  low = Math.min(low, high - least);
  const whole = low <= extent.low && high >= extent.high;
  return whole ? null : { low, high };
}
