/**
 * A moment chosen on the curve of a history: drag, or keys. The wheel zooms; a strip
 * below then shows the whole with the part in sight.
 */

import { useCallback, useEffect, useMemo, useRef } from "preact/hooks";
import type { HistoryDevice } from "../../api/types.gen";
import { formatInteger, type ByteUnit } from "../../base/bytes";
import type { Theme } from "../../base/tokens";
import { wheelFactor } from "../../render/gestures";
import type { BlockAxis } from "../block_stack/axis";
import { momentText } from "../block_stack/axis";
import type { DrawnMarks } from "../block_stack/marks";
import { useWidth } from "../plot/canvas";
import { Minimap, MINIMAP_PX } from "../minimap/minimap";
import { CURVE_PX, LEFT_PX, paintScrubber, RIGHT_PX, scrubberHeight } from "./paint";
import {
  momentAfterKey,
  momentAt,
  wholeRange,
  zoomedRange,
  type EventRange,
} from "./place";
import "./scrubber.css";

export interface ScrubberProps {
  readonly label: string;
  readonly device: HistoryDevice;
  readonly axis: BlockAxis;
  readonly marks: DrawnMarks;
  readonly moment: number;
  /** The part in sight; null: all. */
  readonly range: EventRange | null;
  /** What the moment is, read out. */
  readonly words: string;
  readonly onMoment: (moment: number) => void;
  readonly onRange: (range: EventRange | null) => void;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
}

export function Scrubber(props: ScrubberProps) {
  const { device, axis, marks, moment, theme, byteUnit, onMoment, onRange } = props;
  const { curve, numEvents } = device;
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const dragging = useRef(false);
  const fullPx = useWidth(box);
  const widthPx = Math.max(0, fullPx - LEFT_PX - RIGHT_PX);
  const range = useMemo(
    () => props.range ?? wholeRange(numEvents),
    [props.range?.low, props.range?.high, numEvents],
  );
  const totalPx = scrubberHeight(marks);
  useEffect(() => {
    const element = canvas.current;
    const context = element?.getContext("2d") ?? null;
    if (element === null || context === null || widthPx < 2) return;
    const ratio = window.devicePixelRatio || 1;
    element.width = Math.round(fullPx * ratio);
    element.height = Math.round(totalPx * ratio);
    context.scale(ratio, ratio);
    const scene = { curve, axis, marks, range, moment, theme, byteUnit, widthPx };
    paintScrubber(context, scene);
  }, [curve, axis, marks, range, moment, theme, byteUnit, fullPx, totalPx]);

  const latest = useRef({ range, onRange, widthPx, numEvents });
  latest.current = { range, onRange, widthPx, numEvents };
  useEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    // Registered by hand: a wheel listener must not be passive to hold the page.
    const onWheel = (event: WheelEvent): void => {
      const now = latest.current;
      const rect = element.getBoundingClientRect();
      const share = (event.clientX - rect.left - LEFT_PX) / now.widthPx;
      const whole = wholeRange(now.numEvents);
      const factor = wheelFactor(event.deltaY, event.deltaMode);
      const isAll = now.range.high - now.range.low >= whole.high - whole.low;
      if (now.widthPx < 2 || (isAll && factor >= 1)) return;
      event.preventDefault();
      const inside = Math.min(Math.max(share, 0), 1);
      const at = now.range.low + inside * (now.range.high - now.range.low);
      now.onRange(zoomedRange(now.range, at, factor, now.numEvents));
    };
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => element.removeEventListener("wheel", onWheel);
  }, []);

  function at(event: PointerEvent): number {
    const rect = box.current?.getBoundingClientRect();
    const share =
      rect === undefined ? 0 : (event.clientX - rect.left - LEFT_PX) / widthPx;
    return momentAt(range, Math.min(Math.max(share, 0), 1), numEvents);
  }

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
        aria-valuetext={props.words}
        onPointerDown={(event) => {
          if (event.button !== 0 || widthPx < 2) return;
          event.currentTarget.setPointerCapture(event.pointerId);
          dragging.current = true;
          onMoment(at(event));
        }}
        onPointerMove={(event) => {
          if (dragging.current) onMoment(at(event));
        }}
        onPointerUp={() => {
          dragging.current = false;
        }}
        onPointerCancel={() => {
          dragging.current = false;
        }}
        onDblClick={() => onRange(null)}
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
        <canvas ref={canvas} style={{ width: `${fullPx}px`, height: `${totalPx}px` }} />
      </div>
      {props.range !== null && <Whole {...props} range={props.range} />}
    </div>
  );
}

function Whole(props: ScrubberProps & { readonly range: EventRange }) {
  const { device, marks, theme, moment, onRange, range } = props;
  const { curve, numEvents } = device;
  const draw = useCallback(
    (context: CanvasRenderingContext2D, widthPx: number): void => {
      context.save();
      context.translate(-LEFT_PX, 0);
      context.scale(1, MINIMAP_PX / CURVE_PX);
      paintScrubber(context, {
        ...props,
        curve,
        range: wholeRange(numEvents),
        marks: { ...marks, spans: [] },
        widthPx,
      });
      context.restore();
    },
    [curve, numEvents, marks, theme, moment],
  );
  return (
    <Minimap
      label={`All ${formatInteger(numEvents)} events; drag to choose the part above. Shown: ${momentText(Math.floor(range.low))} to ${momentText(Math.ceil(range.high) - 1)}`}
      draw={draw}
      extent={wholeRange(numEvents)}
      range={range}
      onRange={onRange}
    />
  );
}
