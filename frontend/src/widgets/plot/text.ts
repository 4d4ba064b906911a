/** Text on charts. */

import { tokens, type Theme } from "../../base/tokens";
import type { Pen } from "../export/pen";

/** The text, or as much of it as there is room for; "" where that says nothing. */
export function fitting(
  text: string,
  roomPx: number,
  widthOf: (text: string) => number,
): string {
  if (widthOf(text) <= roomPx) return text;
  let low = 0;
  let high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (widthOf(`${text.slice(0, middle)}…`) <= roomPx) low = middle;
    else high = middle - 1;
  }
  return low < 4 ? "" : `${text.slice(0, low).trimEnd()}…`;
}

/** Text that stays readable on whatever lies below it. */
export function haloText(
  pen: Pen,
  theme: Theme,
  text: string,
  x: number,
  y: number,
): void {
  pen.lineWidth = 3;
  pen.lineJoin = "round";
  pen.strokeStyle = tokens(theme).bg;
  pen.globalAlpha = 0.85;
  pen.strokeText(text, x, y);
  pen.globalAlpha = 1;
  pen.fillText(text, x, y);
}
