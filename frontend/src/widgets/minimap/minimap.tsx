/** Everything in a strip, with a brush over the part that is shown. */

import { useEffect, useRef } from "preact/hooks";
import type { XRange } from "../plot/range";
import { fitted, useWidth } from "../plot/canvas";
import "./minimap.css";

export const MINIMAP_PX = 44;
/** The plot above has these gutters. */
const LEFT_PX = 72;
const RIGHT_PX = 14;

export interface MinimapProps {
  readonly label: string;
  /** Draws the whole extent on a context in CSS px; a new function draws again. */
  readonly draw: (context: CanvasRenderingContext2D, widthPx: number) => void;
  /** Says what it shows, to who points at it. */
  readonly words?: (widthPx: number) => string;
  readonly extent: XRange;
  readonly range: XRange | null;
  readonly onRange: (range: XRange | null) => void;
  /** Where the plot above begins. */
  readonly leftPx?: number;
}

interface Grip {
  readonly part: BrushPart;
  readonly from: number;
  readonly range: XRange;
}

export function Minimap(props: MinimapProps) {
  const { label, draw, extent, range, onRange, leftPx = LEFT_PX } = props;
  const root = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const grip = useRef<Grip | null>(null);
  const fullPx = useWidth(root);
  const widthPx = Math.max(0, fullPx - leftPx - RIGHT_PX);

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
    const held = grip.current;
    if (held === null) return;
    onRange(brushAfter(held.part, held.range, xAt(event) - held.from, extent));
  }

  return (
    <div
      ref={root}
      class="minimap"
      role="img"
      aria-label={label}
      title={widthPx < 1 ? "" : props.words?.(widthPx)}
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

/** What dragging on the minimap does to the range. Pure. */
type BrushPart = "low" | "high" | "middle" | "new";

/** What a pointer at x takes hold of; `reach` is an edge's width in units of x. */
export function partAt(x: number, range: XRange | null, reach: number): BrushPart {
  if (range === null) return "new";
  // On a narrow brush the nearer edge wins, and its middle third stays for moving.
  const edge = Math.min(reach, (range.high - range.low) / 3 + reach / 3);
  const [toLow, toHigh] = [Math.abs(x - range.low), Math.abs(x - range.high)];
  if (toLow <= edge && toLow <= toHigh) return "low";
  if (toHigh <= edge) return "high";
  return x > range.low && x < range.high ? "middle" : "new";
}

/** The range after a drag by `by`; null where it is everything. */
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
