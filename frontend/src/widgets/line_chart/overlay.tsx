/** The values under the pointer, below or above the plot: never over its lines. */

import type { ReadonlySignal } from "@preact/signals";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { PointPx } from "../../render/gestures";
import type { SizePx } from "../../render/viewport";
import { bandRow, cursorRows } from "./cursor";
import { frameOf, GUTTER, type ChartLook } from "./paint";
import { BAND_ID, projectX, visibleLines } from "./shapes";
import { Tooltip } from "./tooltip";

/** Marks this near to the pointer are named. */
const MARK_REACH_PX = 6;

export interface ChartOverlayProps {
  readonly hover: ReadonlySignal<PointPx | null>;
  readonly cursor: ReadonlySignal<number | null>;
  readonly look: ChartLook;
  readonly size: SizePx;
}

export function ChartOverlay({ hover, cursor, look, size }: ChartOverlayProps) {
  const at = hover.value;
  const x = cursor.value;
  const root = useRef<HTMLDivElement>(null);
  const [above, setAbove] = useState(false);
  // Once for each time that the pointer comes in.
  useLayoutEffect(() => {
    const plot = root.current?.parentElement?.getBoundingClientRect();
    const tip = root.current?.firstElementChild?.getBoundingClientRect();
    if (plot === undefined || tip === undefined) return;
    const fits = plot.bottom + tip.height <= window.innerHeight;
    setAbove(!fits && plot.top > window.innerHeight - plot.bottom);
  }, [at === null || x === null]);
  if (at === null || x === null) return null;
  const toX = projectX(frameOf(look, size));
  const { data } = look;
  const band = data.band === null || data.hidden.has(BAND_ID) ? null : data.band;
  return (
    <div ref={root}>
      <Tooltip
        x={x}
        xKind={look.xKind}
        unit={look.unit}
        byteUnit={look.byteUnit}
        theme={look.theme}
        rows={cursorRows(visibleLines(data), x)}
        band={band === null ? null : bandRow(band, x)}
        marks={look.marks.filter(
          (mark) => Math.abs(toX(mark.x) - at.x) <= MARK_REACH_PX,
        )}
        at={{
          leftPx: GUTTER.left + toX(x),
          topPx: above ? GUTTER.top : GUTTER.top + size.heightPx + GUTTER.bottom,
          flip: at.x > size.widthPx / 2,
          above,
        }}
      />
    </div>
  );
}
