/** Both timelines on one axis, with the difference between them filled. Pure. */

import type { HistoryDevice } from "../../../api/types.gen";
import type { ByteUnit } from "../../../base/bytes";
import { tokens, type Theme } from "../../../base/tokens";
import { valueTicks } from "../../../model/lines/axis";
import { divergingColours } from "../../../model/category";
import { svg, type SvgNode } from "../../../widgets/export/svg";

/** What stands at the same x: shares of each history, its events, its time. */
export type OverlayAxis = "share" | "event" | "time";

export interface Curve {
  readonly x: Float64Array;
  readonly bytes: Float64Array;
  /** Where it ends. */
  readonly last: number;
}

const LEFT_PX = 72;
const RIGHT_PX = 24;
const BOTTOM_PX = 22;
const TOP_PX = 8;

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

/** Where an event stands on the axis. */
export function placeOf(
  device: HistoryDevice,
  axis: OverlayAxis,
  moment: number,
): number {
  const { curve, numEvents } = device;
  const event = Math.max(0, moment);
  if (axis === "share") return event / Math.max(1, numEvents);
  if (axis === "event") return event;
  const at = curve.event.findLastIndex((first) => first <= event);
  return ((curve.timeMs[Math.max(0, at)] ?? NaN) - (device.firstMs ?? NaN)) / 1000;
}

/** The curve's bytes at x: it holds a value until the next one. */
export function bytesAt({ x, bytes, last }: Curve, at: number): number {
  if (!(at >= 0) || at > last) return NaN;
  let low = 0;
  let high = x.length - 1;
  if (high < 0) return NaN;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((x[middle] ?? 0) <= at) low = middle;
    else high = middle - 1;
  }
  return bytes[low] ?? NaN;
}

export function overlayNodes(
  a: Curve,
  b: Curve,
  of: {
    readonly axis: OverlayAxis;
    readonly widthPx: number;
    readonly heightPx: number;
    readonly theme: Theme;
    readonly byteUnit: ByteUnit;
    readonly aAt: number;
    readonly bAt: number;
  },
): readonly SvgNode[] {
  const { widthPx, heightPx, theme, byteUnit, axis } = of;
  const { text, secondary, grid, link } = tokens(theme);
  const [less, more] = divergingColours(theme);
  const last = Math.max(a.last, b.last) || 1;
  const most = 1.06 * Math.max(1, ...a.bytes, ...b.bytes);
  const wide = Math.max(1, widthPx - LEFT_PX - RIGHT_PX);
  const high = heightPx - BOTTOM_PX - TOP_PX;
  const px = (x: number): number => LEFT_PX + (x / last) * wide;
  const py = (bytes: number): number => TOP_PX + high * (1 - bytes / most);
  const nodes: SvgNode[] = [];
  for (const { value, text: words } of valueTicks(0, most, 5, "bytes", byteUnit)) {
    nodes.push(
      svg("line", {
        x1: LEFT_PX,
        x2: widthPx - RIGHT_PX,
        y1: py(value),
        y2: py(value),
        stroke: grid,
      }),
      svg(
        "text",
        { x: LEFT_PX - 8, y: py(value) + 4, fill: secondary, "text-anchor": "end" },
        words,
      ),
    );
  }
  const ticks =
    axis === "share"
      ? valueTicks(0, 100 * last, 6, "percent").map((tick) => ({
          ...tick,
          value: tick.value / 100,
        }))
      : valueTicks(0, last, 8, axis === "time" ? "seconds" : "count");
  for (const { value, text: words } of ticks) {
    nodes.push(
      svg(
        "text",
        { x: px(value), y: heightPx - 6, fill: secondary, "text-anchor": "middle" },
        words,
      ),
    );
  }
  nodes.push(...between(a, b, { wide, px, py, last, less, more }));
  nodes.push(line(a, px, py, text, null), line(b, px, py, link, null));
  const mark = (at: number, label: string, colour: string): void => {
    if (!Number.isFinite(at)) return;
    nodes.push(
      svg("line", {
        x1: px(at),
        x2: px(at),
        y1: TOP_PX,
        y2: TOP_PX + high,
        stroke: colour,
        "stroke-dasharray": "3 3",
      }),
      svg(
        "text",
        {
          x: px(at) + 4,
          y: TOP_PX + (label === "A" ? 10 : 24),
          fill: colour,
          "font-weight": 500,
        },
        label,
      ),
    );
  };
  mark(of.aAt, "A", text);
  mark(of.bAt, "B", link);
  return nodes;
}

function line(
  curve: Curve,
  px: (x: number) => number,
  py: (bytes: number) => number,
  colour: string,
  dash: string | null,
): SvgNode {
  let data = "";
  curve.x.forEach((x, i) => {
    const y = py(curve.bytes[i] ?? 0).toFixed(1);
    const next = curve.x[i + 1] ?? curve.last;
    data += `${i === 0 ? "M" : "L"}${px(x).toFixed(1)} ${y}H${px(next).toFixed(1)}`;
  });
  return svg("path", {
    d: data,
    fill: "none",
    stroke: colour,
    "stroke-width": 1.5,
    "stroke-dasharray": dash,
  });
}

/** One column a px: blue where B holds less, orange where it holds more. */
function between(
  a: Curve,
  b: Curve,
  of: {
    readonly wide: number;
    readonly px: (x: number) => number;
    readonly py: (bytes: number) => number;
    readonly last: number;
    readonly less: string;
    readonly more: string;
  },
): readonly SvgNode[] {
  const data: Record<"less" | "more", string> = { less: "", more: "" };
  const step = 2;
  for (let at = 0; at < of.wide; at += step) {
    const x = (at / of.wide) * of.last;
    const [before, after] = [bytesAt(a, x), bytesAt(b, x)];
    if (!Number.isFinite(before) || !Number.isFinite(after) || before === after)
      continue;
    const [top, bottom] = [
      of.py(Math.max(before, after)),
      of.py(Math.min(before, after)),
    ];
    const column = `M${of.px(x).toFixed(1)} ${top.toFixed(1)}h${step}V${bottom.toFixed(1)}h-${step}z`;
    data[after > before ? "more" : "less"] += column;
  }
  return (["less", "more"] as const)
    .filter((way) => data[way] !== "")
    .map((way) => svg("path", { d: data[way], fill: of[way], "fill-opacity": 0.3 }));
}
