/**
 * Drag or keys choose a moment, Shift and drag a range of events, whose ends can be dragged
 * too. With `onRange` the wheel zooms; a strip then shows the whole.
 */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { HistoryDevice } from "../../api/types.gen";
import { counted, type ByteUnit } from "../../base/bytes";
import type { Theme } from "../../base/tokens";
import { wheelFactor } from "../../render/gestures";
import { pxToX, xToPx, yToPx } from "../../render/viewport";
import { momentText, type BlockAxis } from "../block_stack/axis";
import type { DrawnMarks } from "../block_stack/marks";
import { HistoryMinimap } from "../minimap/history";
import {
  GUTTER,
  paintAxes,
  paintHistory,
  paintMarks,
  totalHeight,
} from "../block_stack/paint/paint";
import { clipTo } from "../plot/axes";
import { fitted, useWidth } from "../plot/canvas";
import type { XRange } from "../plot/range";
import {
  momentAfterKey,
  momentAt,
  rangeAfterKey,
  rangeBetween,
  wholeRange,
  zoomedRange,
} from "./place";
import "./scrubber.css";

const CURVE_PX = 56;
const HEADROOM = 1.08;

interface ScrubberProps {
  readonly label: string;
  readonly device: HistoryDevice;
  /** In events. */
  readonly axis: BlockAxis;
  readonly marks: DrawnMarks;
  readonly moment: number;
  /** Default: all. */
  readonly range?: XRange | null;
  readonly valueText: string;
  readonly onMoment: (moment: number) => void;
  readonly onRange?: (range: XRange | null) => void;
  /** The chosen range: events from `low` to before `high`. */
  readonly chosen?: XRange | null;
  readonly onChosen?: (range: XRange) => void;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
}

export function Scrubber(props: ScrubberProps) {
  const { device, axis, moment, theme, byteUnit, onMoment, onRange } = props;
  const { numEvents } = device;
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const dragging = useRef(false);
  /** Event at which a range began to be dragged. */
  const rangeStart = useRef(0);
  const [drawn, setDrawn] = useState<XRange | null>(null);
  const fullPx = useWidth(box);
  const { range: part = null } = props;
  const range = part ?? wholeRange(numEvents);
  const { low, high } = range;
  // Only steps: spans inside have no room.
  const marks = useMemo(() => {
    const spans = props.marks.spans.filter(({ row }) => row === 0);
    return { ...props.marks, spans, numRows: Math.min(1, spans.length) };
  }, [props.marks]);
  const size = {
    widthPx: Math.max(0, fullPx - GUTTER.left - GUTTER.right),
    heightPx: CURVE_PX,
  };
  const totalPx = totalHeight(size, marks);
  useEffect(() => {
    const context = size.widthPx < 2 ? null : fitted(canvas.current, fullPx, totalPx);
    if (context === null) return;
    const view = { x0: low, x1: high, y0: highestIn(device, range) * HEADROOM, y1: 0 };
    const of = { device, axis, marks, moment, marked: null, theme, byteUnit };
    const scene = { of, view, size, left: GUTTER.left, top: GUTTER.top };
    paintAxes(context, scene);
    clipTo(context, GUTTER.left, GUTTER.top, size.widthPx, CURVE_PX);
    paintHistory(
      context,
      of,
      (x) => GUTTER.left + xToPx(view, size.widthPx, x),
      (bytes) => GUTTER.top + yToPx(view, CURVE_PX, bytes),
    );
    context.restore();
    paintMarks(context, scene);
  }, [device, axis, marks, low, high, moment, theme, byteUnit, fullPx, totalPx]);

  function xAt(event: MouseEvent): number {
    const left = (box.current?.getBoundingClientRect().left ?? 0) + GUTTER.left;
    const px = Math.min(Math.max(event.clientX - left, 0), size.widthPx);
    return pxToX({ x0: low, x1: high, y0: 0, y1: 1 }, size.widthPx, px);
  }

  const onWheel = useRef<((event: WheelEvent) => void) | null>(null);
  onWheel.current = (event) => {
    const factor = wheelFactor(event.deltaY, event.deltaMode);
    if (onRange === undefined || size.widthPx < 2) return;
    if (part === null && factor >= 1) return;
    event.preventDefault();
    onRange(zoomedRange(range, xAt(event), factor, numEvents));
  };
  useEffect(() => {
    const element = box.current;
    // Not in JSX: the listener must not be passive to stop the page from scrolling.
    const listen = (event: WheelEvent): void => onWheel.current?.(event);
    element?.addEventListener("wheel", listen, { passive: false });
    return () => element?.removeEventListener("wheel", listen);
  }, []);

  const end = (): void => {
    dragging.current = false;
    if (drawn !== null) props.onChosen?.(drawn);
    setDrawn(null);
  };
  const go = (event: PointerEvent): void => onMoment(momentAt(xAt(event), numEvents));
  const draw = (event: PointerEvent): void =>
    setDrawn(rangeBetween(rangeStart.current, xAt(event), numEvents));
  const chosen = drawn ?? props.chosen ?? null;
  const pxOf = (event: number): number =>
    xToPx({ x0: low, x1: high, y0: 0, y1: 1 }, size.widthPx, event);
  const edge = (which: "low" | "high") =>
    chosen !== null && (
      <RangeEdge
        which={which}
        chosen={chosen}
        numEvents={numEvents}
        onChosen={(next) => props.onChosen?.(next)}
        onGrab={(event) => {
          rangeStart.current = which === "low" ? chosen.high : chosen.low;
          box.current?.setPointerCapture(event.pointerId);
          setDrawn(chosen);
        }}
      />
    );
  return (
    <div class="scrubber">
      <div
        ref={box}
        class="scrubber-plot"
        style={{ height: `${totalPx}px` }}
        tabIndex={0}
        role="slider"
        aria-label={props.label}
        aria-valuemin={-1}
        aria-valuemax={numEvents - 1}
        aria-valuenow={moment}
        aria-valuetext={props.valueText}
        onPointerDown={(event) => {
          if (event.button !== 0 || size.widthPx < 2) return;
          event.currentTarget.setPointerCapture(event.pointerId);
          if (event.shiftKey && props.onChosen !== undefined) {
            rangeStart.current = xAt(event);
            draw(event);
            return;
          }
          dragging.current = true;
          go(event);
        }}
        onPointerMove={(event) => {
          if (drawn !== null) draw(event);
          else if (dragging.current) go(event);
        }}
        onPointerUp={end}
        onPointerCancel={end}
        onDblClick={() => onRange?.(null)}
        onKeyDown={(event) => {
          if (event.altKey || event.ctrlKey || event.metaKey) return;
          const { key, shiftKey } = event;
          const next = momentAfterKey(key, shiftKey, moment, range, numEvents);
          if (next === null) return;
          event.preventDefault();
          event.stopPropagation();
          onMoment(next);
        }}
      >
        <canvas ref={canvas} />
      </div>
      {chosen !== null && size.widthPx > 2 && (
        <div
          class={`scrubber-range ${drawn === null ? "" : "is-drawn"}`}
          style={{
            left: `${GUTTER.left + pxOf(chosen.low)}px`,
            width: `${pxOf(chosen.high) - pxOf(chosen.low)}px`,
            top: `${GUTTER.top}px`,
            height: `${CURVE_PX}px`,
          }}
        >
          {edge("low")}
          {edge("high")}
        </div>
      )}
      {part !== null && onRange !== undefined && (
        <HistoryMinimap
          label={`All of ${counted(numEvents, "event")}; drag to choose the part above. Shown: ${momentText(Math.floor(low))} to ${momentText(Math.ceil(high) - 1)}`}
          of={props}
          seen={{ x0: low, x1: high }}
          onRange={onRange}
        />
      )}
    </div>
  );
}

function RangeEdge(props: {
  readonly which: "low" | "high";
  readonly chosen: XRange;
  readonly numEvents: number;
  readonly onChosen: (range: XRange) => void;
  readonly onGrab: (event: PointerEvent) => void;
}) {
  const { which, chosen, numEvents } = props;
  const event = which === "low" ? chosen.low : chosen.high - 1;
  return (
    <div
      class={`scrubber-edge is-${which}`}
      tabIndex={0}
      role="slider"
      aria-label={which === "low" ? "Start of the range" : "End of the range"}
      aria-valuemin={0}
      aria-valuemax={numEvents - 1}
      aria-valuenow={event}
      aria-valuetext={momentText(event)}
      onPointerDown={(press) => {
        if (press.button !== 0) return;
        press.stopPropagation();
        props.onGrab(press);
      }}
      onKeyDown={(press) => {
        if (press.altKey || press.ctrlKey || press.metaKey) return;
        const next = rangeAfterKey(press.key, press.shiftKey, which, chosen, numEvents);
        if (next === null) return;
        press.preventDefault();
        press.stopPropagation();
        props.onChosen(next);
      }}
    />
  );
}

function highestIn({ curve }: HistoryDevice, { low, high }: XRange): number {
  const { event, active, reserved } = curve;
  let most = 1;
  event.forEach((begin, i) => {
    const end = event[i + 1] ?? Infinity;
    if (begin < high && end > low) {
      most = Math.max(most, active[i] ?? 0, reserved[i] ?? 0);
    }
  });
  return most;
}
