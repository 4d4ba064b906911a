/** What floats over the plot: the box being drawn, and the values under the pointer. */

import type { ReadonlySignal } from "@preact/signals";
import type { Mark } from "../../api/types.gen";
import type { PointPx } from "../../render/gestures";
import type { RectPx } from "../../render/viewport";
import { bandRow, cursorRows } from "./cursor";
import type { Plot } from "./plot";
import { BAND_ID, projectX, visibleLines } from "./shapes";
import { Tooltip } from "./tooltip";

/** Marks this near to the pointer are named. */
const MARK_REACH_PX = 6;

export interface ChartOverlayProps {
  readonly hover: ReadonlySignal<PointPx | null>;
  readonly box: ReadonlySignal<RectPx | null>;
  readonly cursor: ReadonlySignal<number | null>;
  readonly plot: { readonly current: Plot | null };
  readonly marks: readonly Mark[];
}

export function ChartOverlay({ hover, box, cursor, plot, marks }: ChartOverlayProps) {
  const at = hover.value;
  const rect = box.value;
  const x = cursor.value;
  const made = plot.current;
  if (made === null) return null;
  const { origin, frame, state } = made;
  if (rect !== null) {
    const style = {
      left: `${origin.left + rect.x}px`,
      top: `${origin.top + rect.y}px`,
      width: `${rect.width}px`,
      height: `${rect.height}px`,
    };
    return <div class="drawing-box" style={style} />;
  }
  if (at === null || x === null) return null;
  const toX = projectX(frame);
  const { data } = state;
  const band = data.band === null || data.hidden.has(BAND_ID) ? null : data.band;
  return (
    <Tooltip
      x={x}
      xKind={state.xKind}
      unit={state.unit}
      byteUnit={state.byteUnit}
      theme={state.theme}
      rows={cursorRows(visibleLines(data), x)}
      band={band === null ? null : bandRow(band, x)}
      marks={marks.filter((mark) => Math.abs(toX(mark.x) - at.x) <= MARK_REACH_PX)}
      at={{
        leftPx: origin.left + toX(x),
        topPx: origin.top + 8,
        flip: at.x > frame.widthPx / 2,
      }}
    />
  );
}
