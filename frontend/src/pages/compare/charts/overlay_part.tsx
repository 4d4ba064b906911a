import { useMemo, useState } from "preact/hooks";
import type { HistoryDevice, Mark } from "../../../api/types.gen";
import { tokens } from "../../../base/tokens";
import { divergingColours } from "../../../model/category";
import { valueTicks, type XAxis } from "../../../model/lines/axis";
import { lowerBound } from "../../../model/lines/polyline";
import { mergeX } from "../../../model/table";
import { formatQuantity } from "../../../model/words/quantity";
import { LineChart } from "../../../widgets/line_chart/line_chart";
import type { ChartFill, ChartLine } from "../../../widgets/line_chart/types";
import type { XRange } from "../../../widgets/plot/range";
import { Segmented } from "../../shared/controls/choices";
import { lookOf } from "../../shared/view_props";
import type { DifferenceProps } from "../params";

const OVERLAY_PX = 226;

/** Aligns both histories by share of their length, by event or by time. */
type OverlayAxis = "share" | "event" | "time";

const AXIS_WORDS = {
  share: ["Normalised (0–100 %)", "Each history scaled to the same width"],
  event: ["Events", "At the same event number"],
  time: ["Time", "The same time since the first event"],
} as const;

export interface Curve {
  readonly x: Float64Array;
  readonly bytes: Float64Array;
  /** x where the curve ends. */
  readonly last: number;
}

export function Overlay({ view, answer, a, b }: DifferenceProps) {
  const { theme } = view;
  const [wanted, setWanted] = useState<OverlayAxis>("share");
  const [range, setRange] = useState<XRange | null>(null);
  const isTimed = a.hasTimes && b.hasTimes;
  const kind = wanted === "time" && !isTimed ? "share" : wanted;
  const [aAt, bAt] = [answer.a.moment.moment, answer.b.moment.moment];
  const drawn = useMemo(() => {
    const [first, second] = [curveOf(a, kind), curveOf(b, kind)];
    const { text, link } = tokens(theme);
    const last = Math.max(first.last, second.last) || 1;
    const moments = [
      ["A", placeOf(a, kind, aAt)],
      ["B", placeOf(b, kind, bAt)],
    ] as const;
    return {
      lines: [lineOf("A", first, text), lineOf("B", second, link)],
      fills: fillsOf(first, second, divergingColours(theme)),
      marks: moments
        .filter(([, x]) => Number.isFinite(x))
        .map(([label, x]): Mark => ({ kind: "user", x, rank: null, label })),
      extent: { low: 0, high: last },
      x: axisOf(kind, last),
    };
  }, [a, b, kind, theme, aAt, bAt]);
  return (
    <section aria-label="Live bytes of A and B">
      <div class="panel-head">
        <h2>Live bytes of both</h2>
        <Segmented
          label="Align by"
          options={["share", "event", "time"] as const}
          chosen={kind}
          labels={(option) =>
            option === "time" && !isTimed
              ? ["Time", "Not both files have times"]
              : AXIS_WORDS[option]
          }
          disabled={(option) => option === "time" && !isTimed}
          onChoose={(option) => {
            setRange(null);
            setWanted(option);
          }}
        />
      </div>
      <LineChart
        label="Live bytes of A and B"
        title=""
        unit="bytes"
        {...drawn}
        {...lookOf(view)}
        range={range}
        onRange={setRange}
        heightPx={OVERLAY_PX}
      />
    </section>
  );
}

function axisOf(kind: OverlayAxis, last: number): XAxis {
  const least = last * 1e-4;
  if (kind === "share") {
    const percent = (x: number): string => formatQuantity(100 * x, "percent");
    const ticks: XAxis["ticks"] = (low, high, most) =>
      valueTicks(100 * low, 100 * high, most, "percent").map(({ value, text }) => ({
        value: value / 100,
        text,
      }));
    return { name: "share of each history", column: kind, least, ticks, text: percent };
  }
  const unit = kind === "time" ? "seconds" : "count";
  return {
    name: kind === "time" ? "time since the first event" : "events",
    column: kind,
    least,
    ticks: (low, high, most) => valueTicks(low, high, most, unit),
    text: (x) => `${kind === "time" ? "" : "event "}${formatQuantity(x, unit)}`,
  };
}

function lineOf(label: string, { x, bytes, last }: Curve, colour: string): ChartLine {
  const y = Float64Array.of(...bytes, bytes.at(-1) ?? NaN);
  const all = Float64Array.of(...x, last);
  return { id: label, label, x: all, y, yLow: y, colour, isStepped: true };
}

export function fillsOf(
  a: Curve,
  b: Curve,
  colours: readonly [less: string, more: string],
): readonly ChartFill[] {
  const changeX = mergeX([a.x, b.x, Float64Array.of(Math.min(a.last, b.last))]);
  const corners = 2 * (changeX.length - 1);
  // A step curve: each value lasts until the next, so each has two corners.
  const x = Float64Array.from(
    { length: corners },
    (_, i) => changeX[(i + 1) >> 1] ?? NaN,
  );
  const bytesOf = (of: Curve) =>
    Float64Array.from({ length: corners }, (_, i) =>
      bytesAt(of, changeX[i >> 1] ?? NaN),
    );
  const [before, after] = [bytesOf(a), bytesOf(b)];
  const where = (values: Float64Array, isMore: boolean): Float64Array =>
    values.map((value, i) => {
      const [from = NaN, to = NaN] = [before[i], after[i]];
      return (isMore ? to > from : to < from) ? value : NaN;
    });
  const [less, more] = colours;
  return [
    { x, low: where(after, false), high: where(before, false), colour: less },
    { x, low: where(before, true), high: where(after, true), colour: more },
  ];
}

export function curveOf(device: HistoryDevice, axis: OverlayAxis): Curve {
  const { curve, numEvents, firstMs, lastMs } = device;
  const begin = firstMs ?? 0;
  const most = Math.max(1, numEvents);
  if (axis === "time") {
    return {
      x: Float64Array.from(curve.timeMs, (ms) => (ms - begin) / 1000),
      bytes: curve.active,
      last: ((lastMs ?? begin) - begin) / 1000,
    };
  }
  const unit = axis === "share" ? most : 1;
  return {
    x: Float64Array.from(curve.event, (event) => event / unit),
    bytes: curve.active,
    last: most / unit,
  };
}

function placeOf(device: HistoryDevice, axis: OverlayAxis, moment: number): number {
  const { curve, numEvents } = device;
  const event = Math.max(0, moment);
  if (axis === "share") return event / Math.max(1, numEvents);
  if (axis === "event") return event;
  const index = curve.event.findLastIndex((first) => first <= event);
  return ((curve.timeMs[Math.max(0, index)] ?? NaN) - (device.firstMs ?? NaN)) / 1000;
}

export function bytesAt({ x, bytes, last }: Curve, targetX: number): number {
  if (!(targetX >= 0) || targetX > last) return NaN;
  let next = lowerBound(x, targetX);
  while (x[next] === targetX) next += 1;
  return bytes[Math.max(0, next - 1)] ?? NaN;
}
