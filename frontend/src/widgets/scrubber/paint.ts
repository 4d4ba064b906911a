/** The scrubber's curve: what was allocated and reserved, marks, steps and the moment. */

import type { HistoryCurve } from "../../api/types.gen";
import { type ByteUnit } from "../../base/bytes";
import { tokens, type Theme } from "../../base/tokens";
import { valueTicks } from "../../model/lines/axis";
import type { BlockAxis } from "../block_stack/axis";
import type { DrawnMarks } from "../block_stack/marks";
import { columnsIn, shareOf, type EventRange } from "./place";

export const CURVE_PX = 76;
const STEPS_PX = 14;
const TICKS_PX = 18;
export const LEFT_PX = 72;
export const RIGHT_PX = 14;
const FONT = "11px Roboto, Helvetica, Arial, sans-serif";
/** Steps are named where there is room for it. */
const STEP_NAME_PX = 44;

export interface ScrubberScene {
  readonly curve: HistoryCurve;
  readonly axis: BlockAxis;
  readonly marks: DrawnMarks;
  readonly range: EventRange;
  readonly moment: number;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
  /** CSS px of the plot, without its gutters. */
  readonly widthPx: number;
}

export function scrubberHeight(marks: DrawnMarks): number {
  return CURVE_PX + (marks.spans.length > 0 ? STEPS_PX : 0) + TICKS_PX;
}

export function paintScrubber(
  context: CanvasRenderingContext2D,
  scene: ScrubberScene,
): void {
  const { theme, widthPx, range, marks } = scene;
  const { text, secondary, bad, link, border } = tokens(theme);
  context.font = FONT;
  context.textBaseline = "middle";
  const x = (moment: number): number => LEFT_PX + shareOf(range, moment) * widthPx;
  const edge = (event: number): number =>
    LEFT_PX + ((event - range.low) / (range.high - range.low)) * widthPx;
  paintCurve(context, scene, edge);
  context.save();
  context.beginPath();
  context.rect(LEFT_PX, 0, widthPx, CURVE_PX + STEPS_PX);
  context.clip();
  for (const mark of marks.points) {
    const isOom = mark.kind === "oom";
    context.globalAlpha = isOom ? 1 : 0.55;
    context.fillStyle = isOom ? bad : secondary;
    context.fillRect(x(mark.moment) - 1, 0, 2, CURVE_PX);
    if (isOom) cross(context, x(mark.moment), 7);
  }
  context.globalAlpha = 1;
  const spans = marks.spans.filter(({ row }) => row === 0);
  spans.forEach((span, i) => {
    const [left, right] = [edge(span.moment + 1), edge(span.end + 1)];
    context.fillStyle = border;
    if (i % 2 === 0) context.fillRect(left, CURVE_PX + 1, right - left, STEPS_PX - 2);
    context.strokeStyle = border;
    context.beginPath();
    context.moveTo(left, CURVE_PX + 1);
    context.lineTo(left, CURVE_PX + STEPS_PX - 1);
    context.stroke();
    if (right - left < STEP_NAME_PX) return;
    context.save();
    context.beginPath();
    context.rect(left, CURVE_PX, right - left - 3, STEPS_PX);
    context.clip();
    context.fillStyle = secondary;
    context.textAlign = "left";
    const at = Math.max(left, LEFT_PX) + 4;
    context.fillText(span.label, at, CURVE_PX + STEPS_PX / 2);
    context.restore();
  });
  context.restore();
  paintTicks(context, scene);
  const at = x(scene.moment);
  if (at < LEFT_PX - 1 || at > LEFT_PX + widthPx + 1) return;
  context.fillStyle = link;
  context.fillRect(at - 1, 0, 2, CURVE_PX + (marks.spans.length > 0 ? STEPS_PX : 0));
  context.beginPath();
  context.arc(at, CURVE_PX, 6, 0, 2 * Math.PI);
  context.fill();
  context.strokeStyle = tokens(theme).bg;
  context.lineWidth = 1.5;
  context.stroke();
  context.fillStyle = text;
}

function cross(context: CanvasRenderingContext2D, x: number, y: number): void {
  context.strokeStyle = context.fillStyle;
  context.lineWidth = 2;
  context.beginPath();
  context.moveTo(x - 4, y - 4);
  context.lineTo(x + 4, y + 4);
  context.moveTo(x + 4, y - 4);
  context.lineTo(x - 4, y + 4);
  context.stroke();
}

function paintCurve(
  context: CanvasRenderingContext2D,
  { curve, range, theme, widthPx, byteUnit }: ScrubberScene,
  edge: (event: number) => number,
): void {
  const { link, secondary, grid, text } = tokens(theme);
  const [first, end] = columnsIn(curve, range);
  let most = 1;
  for (let i = first; i < end; i += 1) {
    most = Math.max(most, curve.reserved[i] ?? 0, curve.allocated[i] ?? 0);
  }
  most *= 1.08;
  const y = (bytes: number): number => CURVE_PX - (bytes / most) * (CURVE_PX - 2);
  context.textAlign = "right";
  for (const { value, text: words } of valueTicks(0, most, 4, "bytes", byteUnit)) {
    const at = Math.round(y(value)) + 0.5;
    context.strokeStyle = grid;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(LEFT_PX, at);
    context.lineTo(LEFT_PX + widthPx, at);
    context.stroke();
    if (at < 6 || value === 0) continue;
    context.fillStyle = secondary;
    context.fillText(words, LEFT_PX - 8, at);
  }
  context.save();
  context.beginPath();
  context.rect(LEFT_PX, 0, widthPx, CURVE_PX);
  context.clip();
  const path = (values: Float64Array): void => {
    context.beginPath();
    for (let i = first; i < end; i += 1) {
      const at = y(values[i] ?? 0);
      const left = edge(curve.event[i] ?? 0);
      if (i === first) context.moveTo(Math.min(left, LEFT_PX), at);
      else context.lineTo(left, at);
      const next = curve.event[i + 1];
      context.lineTo(next === undefined ? LEFT_PX + widthPx : edge(next), at);
    }
  };
  path(curve.allocated);
  context.lineTo(LEFT_PX + widthPx, CURVE_PX);
  context.lineTo(LEFT_PX, CURVE_PX);
  context.closePath();
  context.fillStyle = link;
  context.globalAlpha = 0.4;
  context.fill();
  context.globalAlpha = 0.8;
  path(curve.reserved);
  context.strokeStyle = text;
  context.lineWidth = 1;
  context.stroke();
  context.restore();
  context.globalAlpha = 1;
}

function paintTicks(
  context: CanvasRenderingContext2D,
  { axis, range, theme, widthPx, marks }: ScrubberScene,
): void {
  context.fillStyle = tokens(theme).secondary;
  context.textAlign = "center";
  const middle = scrubberHeight(marks) - TICKS_PX / 2 + 1;
  for (const { value, text } of axis.ticks(range.low, range.high, widthPx)) {
    const share = (value - range.low) / (range.high - range.low);
    if (share < 0 || share > 1) continue;
    context.fillText(text, LEFT_PX + share * widthPx, middle);
  }
}
