/** Marks, lines, bands and the limit's name, in the plot of a line chart. */

import type { Mark } from "../../api/types.gen";
import { tokens, type Theme } from "../../base/tokens";
import { strokeLine } from "../export/figure";
import { FONT, type Pen } from "../export/pen";
import { haloText } from "../plot/text";
import { groupMarks } from "./cursor";
import { markLook } from "./marks";
import {
  chartShapes,
  paintShapes,
  projectX,
  projectY,
  type ChartData,
  type Frame,
} from "./shapes";

/** Lower plots have no room to name a limit that is far away. */
const ROOMY_PX = 130;

export function paintChart(
  pen: Pen,
  frame: Frame,
  data: ChartData,
  marks: readonly Mark[],
  theme: Theme,
): void {
  paintMarks(pen, frame, marks, theme);
  paintShapes(pen, chartShapes(data, frame, theme));
  paintLimitName(pen, frame, data, theme);
}

function paintMarks(
  pen: Pen,
  frame: Frame,
  marks: readonly Mark[],
  theme: Theme,
): void {
  const { widthPx, heightPx } = frame.size;
  const { x0: low, x1: high } = frame.view;
  const toX = projectX(frame);
  pen.textBaseline = "alphabetic";
  for (const group of groupMarks(marks, { low, high }, widthPx)) {
    const x = Math.round(toX(group.x)) + 0.5;
    const look = markLook(group.kind, theme);
    pen.name?.(group.marks.map((mark) => mark.label || mark.kind).join("; "));
    pen.strokeStyle = look.colour;
    pen.fillStyle = look.colour;
    pen.globalAlpha = look.opacity;
    pen.lineWidth = look.widthPx;
    pen.setLineDash([...look.dash]);
    strokeLine(pen, x, heightPx - (look.heightPx ?? heightPx), x, heightPx);
    pen.setLineDash([]);
    pen.globalAlpha = 1;
    const [first] = group.marks;
    const isLetter = first?.kind === "user" && first.label.length === 1;
    const glyph = isLetter ? first.label : look.glyph;
    if (glyph === null) continue;
    const isLast = x > widthPx - 14;
    pen.font = `bold ${FONT}`;
    pen.textAlign = isLast ? "right" : "left";
    pen.fillText(glyph, isLast ? x - 3 : x + 3, 10);
  }
}

/** The limit by name; where it is above what is shown, at the upper edge. */
function paintLimitName(
  pen: Pen,
  frame: Frame,
  { limit }: ChartData,
  theme: Theme,
): void {
  if (limit === null) return;
  const { heightPx } = frame.size;
  const y = projectY(frame)(limit.value);
  pen.font = FONT;
  pen.textAlign = "left";
  pen.textBaseline = "alphabetic";
  pen.fillStyle = tokens(theme).bad;
  if (y < 0) {
    if (heightPx >= ROOMY_PX) haloText(pen, theme, `▲ ${limit.label}`, 6, 12);
  } else if (y <= heightPx) {
    haloText(pen, theme, limit.label, 6, y > 16 ? y - 6 : y + 14);
  }
}
