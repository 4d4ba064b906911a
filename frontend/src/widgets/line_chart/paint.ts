/** Axes, marks, lines and bands of the line chart, on a canvas or in a picture. */

import type { Mark, Unit } from "../../api/types.gen";
import type { ByteUnit } from "../../base/bytes";
import type { Theme } from "../../base/tokens";
import { tokens } from "../../base/tokens";
import { valueTicks, type XAxis } from "../../model/lines/axis";
import type { SizePx } from "../../render/viewport";
import { strokeLine } from "../export/figure";
import { FONT, type Pen } from "../export/pen";
import { clipTo, paintAxes } from "../plot/axes";
import type { Seen } from "../plot/reader";
import { haloText } from "../plot/text";
import { groupMarks } from "./cursor";
import { markLook } from "./marks";
import type { ChartData, Frame } from "./shapes";
import { chartShapes, paintShapes, projectX, projectY } from "./shapes";
import type { XRange } from "../plot/range";

export interface ChartLook {
  readonly data: ChartData;
  readonly x: XRange;
  readonly y: XRange;
  readonly axis: XAxis;
  readonly unit: Unit;
  readonly byteUnit: ByteUnit;
  readonly logScale: boolean;
  readonly theme: Theme;
  readonly marks: readonly Mark[];
}

/** Room for one tick's text along each axis. */
const X_TICK_PX = 84;
const Y_TICK_PX = 26;
/** Lower plots have no room to name a limit that is far away. */
const ROOMY_PX = 130;

export function frameOf({ x, y, logScale }: ChartLook, size: SizePx): Frame {
  return { x, y, logScale, ...size };
}

export function paintChart(pen: Pen, look: ChartLook, seen: Seen): void {
  const { data, x, y, axis, unit, byteUnit, logScale, theme } = look;
  const { left, top, size } = seen;
  const { widthPx, heightPx } = size;
  const frame = frameOf(look, size);
  const mostX = Math.max(2, Math.floor(widthPx / X_TICK_PX));
  const mostY = Math.max(2, Math.floor(heightPx / Y_TICK_PX));
  paintAxes(pen, {
    ...{ ...seen, theme, grid: "both" },
    x: axis.ticks(x.low, x.high, mostX),
    y: valueTicks(y.low, y.high, mostY, unit, byteUnit, logScale),
    toY: projectY(frame),
  });
  clipTo(pen, left, top, widthPx, heightPx);
  pen.translate(left, top);
  paintMarks(pen, look, frame);
  paintShapes(pen, chartShapes(data, frame, theme));
  paintLimitName(pen, look, frame);
  pen.restore();
}

function paintMarks(pen: Pen, chart: ChartLook, frame: Frame): void {
  const toX = projectX(frame);
  pen.textBaseline = "alphabetic";
  for (const group of groupMarks(chart.marks, frame.x, frame.widthPx)) {
    const x = Math.round(toX(group.x)) + 0.5;
    const look = markLook(group.kind, chart.theme);
    pen.name?.(group.marks.map((mark) => mark.label || mark.kind).join("; "));
    pen.strokeStyle = look.colour;
    pen.fillStyle = look.colour;
    pen.globalAlpha = look.opacity;
    pen.lineWidth = look.widthPx;
    pen.setLineDash([...look.dash]);
    const upper = frame.heightPx - (look.heightPx ?? frame.heightPx);
    strokeLine(pen, x, upper, x, frame.heightPx);
    pen.setLineDash([]);
    pen.globalAlpha = 1;
    const [first] = group.marks;
    const isLetter = first?.kind === "user" && first.label.length === 1;
    const glyph = isLetter ? first.label : look.glyph;
    if (glyph === null) continue;
    pen.font = `bold ${FONT}`;
    pen.textAlign = x > frame.widthPx - 14 ? "right" : "left";
    pen.fillText(glyph, x + (x > frame.widthPx - 14 ? -3 : 3), 10);
  }
}

/** The limit by name; where it is above what is shown, at the upper edge. */
function paintLimitName(pen: Pen, { data, theme }: ChartLook, frame: Frame): void {
  const { limit } = data;
  if (limit === null) return;
  const y = projectY(frame)(limit.value);
  pen.font = FONT;
  pen.textAlign = "left";
  pen.textBaseline = "alphabetic";
  pen.fillStyle = tokens(theme).bad;
  if (y < 0) {
    if (frame.heightPx >= ROOMY_PX) haloText(pen, theme, `▲ ${limit.label}`, 6, 12);
  } else if (y <= frame.heightPx) {
    haloText(pen, theme, limit.label, 6, y > 16 ? y - 6 : y + 14);
  }
}
