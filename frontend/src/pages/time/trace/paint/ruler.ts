/** The ruler: times above, steps below. */

import type { TraceSteps } from "../../../../api/types.gen";
import { tokens, type Theme } from "../../../../base/tokens";
import { decimalTicks } from "../../../../model/lines/ticks";
import { xToPx, type Viewport } from "../../../../render/viewport";
import { firstStep } from "./canvas";
import { FONT, widthOf } from "./text";
import { formatTick } from "../words";

export const RULER_PX = 38;

/** Times above, steps below. */
export function paintRuler(
  context: CanvasRenderingContext2D,
  view: Viewport,
  widthPx: number,
  steps: TraceSteps,
  theme: Theme,
  cursorNs: number | null,
): void {
  const { secondary, border, text, link } = tokens(theme);
  const toX = (ns: number): number => xToPx(view, widthPx, ns);
  context.font = FONT;
  context.textBaseline = "middle";
  context.textAlign = "left";
  const ticks = decimalTicks(view.x0, view.x1, Math.max(2, widthPx / 120));
  context.fillStyle = border;
  context.fillRect(0, RULER_PX - 1, widthPx, 1);
  for (const ns of ticks.values) {
    const x = Math.round(toX(ns));
    context.fillStyle = border;
    context.fillRect(x, 0, 1, 20);
    context.fillStyle = secondary;
    context.fillText(formatTick(ns, ticks.step), x + 4, 9);
  }
  let free = -Infinity;
  let first = true;
  for (let i = firstStep(steps, view.x0); i < steps.number.length; i += 1) {
    const start = steps.startNs[i] ?? 0;
    if (start > view.x1) break;
    const left = Math.max(0, toX(start));
    const right = Math.min(widthPx, toX(steps.endNs[i] ?? start));
    context.fillStyle = link;
    context.globalAlpha = i % 2 === 0 ? 0.22 : 0.12;
    context.fillRect(left, 20, Math.max(1, right - left), RULER_PX - 21);
    context.globalAlpha = 1;
    const number = steps.number[i] ?? -1;
    const words = number < 0 ? "" : first ? `step ${number}` : number.toString();
    const wide = widthOf(context, words) + 8;
    if (words === "" || left < free || right - left < wide - 4) continue;
    context.fillStyle = text;
    context.fillText(words, left + 4, 29);
    free = left + wide;
    first = false;
  }
  if (cursorNs !== null) {
    const x = toX(cursorNs);
    const words = formatTick(cursorNs, ticks.step / 100, ticks.step);
    const wide = widthOf(context, words) + 8;
    const left = Math.min(Math.max(0, x - wide / 2), widthPx - wide);
    context.fillStyle = secondary;
    context.fillRect(left, 1, wide, 16);
    context.fillStyle = tokens(theme).bg;
    context.fillText(words, left + 4, 9);
  }
}
