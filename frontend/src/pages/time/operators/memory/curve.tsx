/** Allocated and reserved bytes over a trace; a drag chooses the part that is shown. */

import { useRef, useState } from "preact/hooks";
import type { OperatorMemoryResponse } from "../../../../api/types.gen";
import { formatBytes, formatBytesExact, type ByteUnit } from "../../../../base/bytes";
import { formatSeconds } from "../../../../base/durations";
import type { Theme } from "../../../../base/tokens";
import { partColour } from "../../../../render/palette";
import type { XRange } from "../../../../widgets/line_chart/types";
import { useWidth } from "../../../../widgets/line_chart/use_size";
import {
  byteAxis,
  curveTop,
  msAt,
  peakIn,
  rowAt,
  stepPath,
  timeAxis,
  xOf,
  yOf,
  type CurveFrame,
} from "./curve_shape";

const HEIGHT_PX = 220;
const AXIS_PX = 72;
const FOOT_PX = 22;
const HEAD_PX = 10;
/** A drag shorter than this is a click. */
const LEAST_DRAG_PX = 4;

/** When a block was there, for marks; NaN: not known. */
export interface Lifetime {
  readonly fromMs: number;
  readonly toMs: number;
}

export function MemoryCurve(props: {
  readonly data: OperatorMemoryResponse;
  readonly shown: XRange;
  readonly capacityBytes: number | null;
  readonly mark: Lifetime | null;
  readonly onRange: (range: XRange) => void;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
}) {
  const { data, shown, capacityBytes, mark, theme, byteUnit } = props;
  const box = useRef<HTMLDivElement>(null);
  const outer = useWidth(box);
  const [drag, setDrag] = useState<{ from: number; to: number } | null>(null);
  const [pointed, setPointed] = useState<number | null>(null);
  const { timeMs, allocatedBytes, reservedBytes } = data.curve;
  const allocated = peakIn(shown, timeMs, allocatedBytes);
  const found = peakIn(shown, timeMs, reservedBytes);
  // The host's allocator reserves nothing: no line, rather than one of zeros.
  const reserved = found !== null && found.bytes > 0 ? found : null;
  const frame: CurveFrame = {
    range: shown,
    top: curveTop(Math.max(allocated?.bytes ?? 0, reserved?.bytes ?? 0), capacityBytes),
    widthPx: Math.max(1, outer - AXIS_PX),
    heightPx: HEIGHT_PX,
  };
  const colours = {
    allocated: partColour(theme, "forward"),
    reserved: partColour(theme, "optimizer"),
  };
  const placeOf = (event: PointerEvent): number => {
    const left = box.current?.getBoundingClientRect().left ?? 0;
    return Math.min(frame.widthPx, Math.max(0, event.clientX - left - AXIS_PX));
  };
  const at = pointed === null ? null : msAt(frame, pointed);
  const row = at === null ? -1 : rowAt(data.curve, at);
  const words = (bytes: number | undefined): string =>
    bytes === undefined || Number.isNaN(bytes)
      ? "not known"
      : formatBytes(bytes, byteUnit);
  return (
    <div class="operator-curve" ref={box}>
      <p class="operator-legend">
        <Key colour={colours.allocated} word="Allocated">
          {row >= 0
            ? words(allocatedBytes[row])
            : `peak ${formatBytes(allocated?.bytes ?? null, byteUnit)}`}
        </Key>
        {reserved !== null && (
          <Key colour={colours.reserved} word="Reserved">
            {row >= 0
              ? words(reservedBytes[row])
              : `peak ${formatBytes(reserved.bytes, byteUnit)}`}
          </Key>
        )}
        {capacityBytes !== null && (
          <span class="quiet" title={formatBytesExact(capacityBytes)}>
            The device has {formatBytes(capacityBytes, byteUnit)}
          </span>
        )}
        <span class="quiet">
          {at === null ? "Drag to choose a part" : `at ${formatSeconds(at / 1e3)}`}
        </span>
      </p>
      <svg
        width={outer}
        height={HEAD_PX + HEIGHT_PX + FOOT_PX}
        role="img"
        aria-label={`Memory from ${formatSeconds(shown.low / 1e3)} to ${formatSeconds(shown.high / 1e3)}: at most ${words(allocated?.bytes)} allocated, ${words(reserved?.bytes)} reserved`}
        onPointerDown={(event) => {
          if (event.button !== 0) return;
          event.currentTarget.setPointerCapture(event.pointerId);
          setDrag({ from: placeOf(event), to: placeOf(event) });
        }}
        onPointerMove={(event) => {
          setPointed(placeOf(event));
          if (drag !== null) setDrag({ from: drag.from, to: placeOf(event) });
        }}
        onPointerLeave={() => setPointed(null)}
        onPointerCancel={() => setDrag(null)}
        onPointerUp={() => {
          setDrag(null);
          if (drag === null || Math.abs(drag.to - drag.from) < LEAST_DRAG_PX) return;
          props.onRange({
            low: msAt(frame, Math.min(drag.from, drag.to)),
            high: msAt(frame, Math.max(drag.from, drag.to)),
          });
        }}
      >
        <clipPath id="operator-curve-clip">
          <rect x={0} y={-HEAD_PX} width={frame.widthPx} height={HEIGHT_PX + HEAD_PX} />
        </clipPath>
        <g transform={`translate(${AXIS_PX} ${HEAD_PX})`}>
          <rect class="plane" width={frame.widthPx} height={HEIGHT_PX} />
          {byteAxis(frame, byteUnit).map(({ px, text }) => (
            <g key={text}>
              <line class="grid" x2={frame.widthPx} y1={px} y2={px} />
              <text x={-8} y={px + 4} text-anchor="end">
                {text}
              </text>
            </g>
          ))}
          {timeAxis(frame).map(({ px, text }) => (
            <text
              key={text}
              x={px}
              y={HEIGHT_PX + 16}
              text-anchor={px > frame.widthPx - 24 ? "end" : "middle"}
            >
              {text}
            </text>
          ))}
          <g clip-path="url(#operator-curve-clip)">
            {mark !== null && <Mark mark={mark} frame={frame} />}
            {capacityBytes !== null && capacityBytes <= frame.top && (
              <line
                class="capacity"
                x2={frame.widthPx}
                y1={yOf(frame, capacityBytes)}
                y2={yOf(frame, capacityBytes)}
              />
            )}
            {reserved !== null && (
              <path
                class="curve"
                d={stepPath(frame, timeMs, reservedBytes)}
                stroke={colours.reserved}
              />
            )}
            <path
              class="curve"
              d={stepPath(frame, timeMs, allocatedBytes)}
              stroke={colours.allocated}
            />
            {[allocated, reserved].map(
              (peak, i) =>
                peak !== null && (
                  <circle
                    key={i}
                    cx={xOf(frame, peak.ms)}
                    cy={yOf(frame, peak.bytes)}
                    r={4}
                    fill={i === 0 ? colours.allocated : colours.reserved}
                  >
                    <title>{`Peak: ${formatBytesExact(peak.bytes)} at ${peak.ms} ms`}</title>
                  </circle>
                ),
            )}
            {drag !== null && (
              <rect
                class="drag"
                x={Math.min(drag.from, drag.to)}
                width={Math.abs(drag.to - drag.from)}
                height={HEIGHT_PX}
              />
            )}
            {pointed !== null && (
              <line class="cursor" x1={pointed} x2={pointed} y2={HEIGHT_PX} />
            )}
          </g>
        </g>
      </svg>
    </div>
  );
}

function Key(props: {
  readonly colour: string;
  readonly word: string;
  readonly children: preact.ComponentChildren;
}) {
  return (
    <span>
      <i class="trace-swatch" style={{ background: props.colour }} /> {props.word}{" "}
      <b>{props.children}</b>
    </span>
  );
}

/** Where a block was allocated and freed, and the time between. */
function Mark({
  mark,
  frame,
}: {
  readonly mark: Lifetime;
  readonly frame: CurveFrame;
}) {
  const from = Number.isNaN(mark.fromMs) ? 0 : xOf(frame, mark.fromMs);
  const to = Number.isNaN(mark.toMs) ? frame.widthPx : xOf(frame, mark.toMs);
  return (
    <g class="mark">
      <rect x={from} width={Math.max(1, to - from)} height={frame.heightPx} />
      {!Number.isNaN(mark.fromMs) && <line x1={from} x2={from} y2={frame.heightPx} />}
      {!Number.isNaN(mark.toMs) && (
        <line class="is-release" x1={to} x2={to} y2={frame.heightPx} />
      )}
    </g>
  );
}
