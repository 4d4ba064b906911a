/** Axes, marks, pins and the cross hair: what is drawn over the cells. */

import type { Mark } from "../../api/types.gen";
import type { Theme } from "../../base/tokens";
import { tokens } from "../../base/tokens";
import { xTicks, type Tick } from "../../model/lines/axis";
import { wholeTicks } from "../../model/lines/ticks";
import type { RectPx, SizePx, Viewport } from "../../render/viewport";
import { xToPx, yToPx } from "../../render/viewport";
import { markLook } from "../line_chart/marks";
import { placeOf } from "./layout";

/** The gutter equals the line chart's, so that steps stand below steps. */
export const GUTTER = { left: 72, right: 14, top: 6, bottom: 26 } as const;

/** Labels of the rank axis need this much room. */
const LABEL_PX = 12;
const FONT = "11px Roboto, Helvetica, Arial, sans-serif";

export function plotSize(widthPx: number, heightPx: number): SizePx {
  return {
    widthPx: Math.max(1, widthPx - GUTTER.left - GUTTER.right),
    heightPx: Math.max(1, heightPx - GUTTER.top - GUTTER.bottom),
  };
}

/** Ticks of the rank axis: places, named by the rank that stands there. */
export function rankTicks(
  view: Viewport,
  ranks: Int32Array,
  heightPx: number,
): readonly Tick[] {
  const most = Math.max(2, Math.floor(heightPx / 22));
  const { values } = wholeTicks(view.y0, view.y1 - 1, most);
  return values.flatMap((place) => {
    const rank = ranks[place];
    return rank === undefined ? [] : [{ value: place + 0.5, text: rank.toString() }];
  });
}

export function stepTicks(view: Viewport, widthPx: number): readonly Tick[] {
  return xTicks(view.x0, view.x1, Math.max(2, Math.floor(widthPx / 84)), "step");
}

export interface OverlayState {
  readonly view: Viewport;
  readonly size: SizePx;
  readonly ranks: Int32Array;
  readonly marks: readonly Mark[];
  readonly pinned: readonly number[];
  readonly theme: Theme;
  /** Step of the shared cursor, and the place under the pointer. */
  readonly cursorStep: number | null;
  readonly cursorPlace: number | null;
  readonly box: RectPx | null;
}

function paintAxes(context: CanvasRenderingContext2D, state: OverlayState): void {
  const { view, size, ranks, theme } = state;
  const { secondary, border } = tokens(theme);
  context.font = FONT;
  context.fillStyle = secondary;
  context.strokeStyle = border;
  context.lineWidth = 1;
  context.textAlign = "center";
  for (const tick of stepTicks(view, size.widthPx)) {
    const x = Math.round(GUTTER.left + xToPx(view, size.widthPx, tick.value)) + 0.5;
    const bottom = GUTTER.top + size.heightPx;
    context.beginPath();
    context.moveTo(x, bottom);
    context.lineTo(x, bottom + 4);
    context.stroke();
    context.fillText(tick.text, x, bottom + 17);
  }
  context.textAlign = "right";
  const pins = pinPlaces(state).map((pin) => pin.y);
  for (const tick of rankTicks(view, ranks, size.heightPx)) {
    const y = yToPx(view, size.heightPx, tick.value);
    if (pins.some((pin) => Math.abs(pin - y) < LABEL_PX)) continue;
    context.fillText(tick.text, GUTTER.left - 8, GUTTER.top + y + 4);
  }
}

interface PinPlace {
  readonly rank: number;
  /** Top, middle and bottom of its row, in px of the plot. */
  readonly top: number;
  readonly y: number;
  readonly bottom: number;
}

/** The pinned rows in sight. */
function pinPlaces({ view, size, ranks, pinned }: OverlayState): readonly PinPlace[] {
  return pinned.flatMap((rank) => {
    const place = placeOf(ranks, rank);
    if (ranks[place] !== rank) return [];
    const top = yToPx(view, size.heightPx, place);
    const bottom = yToPx(view, size.heightPx, place + 1);
    if (bottom < 0 || top > size.heightPx) return [];
    return [{ rank, top, y: (top + bottom) / 2, bottom }];
  });
}

function paintPins(context: CanvasRenderingContext2D, state: OverlayState): void {
  const { link } = tokens(state.theme);
  context.font = `bold ${FONT}`;
  context.textAlign = "right";
  context.fillStyle = link;
  context.strokeStyle = link;
  context.lineWidth = 1.5;
  let labelled = -Infinity;
  for (const { rank, top, y, bottom } of pinPlaces(state)) {
    const middle = GUTTER.top + y;
    context.beginPath();
    context.moveTo(GUTTER.left - 1, middle);
    context.lineTo(GUTTER.left - 7, middle - 4);
    context.lineTo(GUTTER.left - 7, middle + 4);
    context.fill();
    // Pins too close to name keep their arrow; zooming in names them.
    if (y - labelled >= LABEL_PX) {
      context.fillText(rank.toString(), GUTTER.left - 10, middle + 4);
      labelled = y;
    }
    if (bottom - top < 4) continue;
    const { widthPx } = state.size;
    context.strokeRect(GUTTER.left - 2, GUTTER.top + top, widthPx + 4, bottom - top);
  }
}

/** A mark of a rank stands on its row; one of the whole run is a line. */
function paintMarks(context: CanvasRenderingContext2D, state: OverlayState): void {
  const { view, size, ranks, theme } = state;
  for (const mark of state.marks) {
    if (mark.x < view.x0 || mark.x > view.x1) continue;
    const look = markLook(mark.kind, theme);
    const x = GUTTER.left + xToPx(view, size.widthPx, mark.x);
    context.strokeStyle = look.colour;
    context.lineWidth = look.widthPx;
    if (mark.rank === null) {
      context.setLineDash([...look.dash]);
      context.beginPath();
      context.moveTo(x, GUTTER.top);
      context.lineTo(x, GUTTER.top + size.heightPx);
      context.stroke();
      context.setLineDash([]);
      continue;
    }
    const place = placeOf(ranks, mark.rank);
    if (mark.kind !== "oom" || ranks[place] !== mark.rank) continue;
    const y = GUTTER.top + yToPx(view, size.heightPx, place + 0.5);
    paintCross(context, x, y);
  }
}

/** An OOM: a cross in a ring, readable on every colour of the palette. */
function paintCross(context: CanvasRenderingContext2D, x: number, y: number): void {
  for (const [colour, width] of [
    ["#ffffff", 5],
    ["#b00020", 2.25],
  ] as const) {
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.beginPath();
    context.arc(x, y, 7, 0, 2 * Math.PI);
    context.moveTo(x - 3.5, y - 3.5);
    context.lineTo(x + 3.5, y + 3.5);
    context.moveTo(x + 3.5, y - 3.5);
    context.lineTo(x - 3.5, y + 3.5);
    context.stroke();
  }
}

function paintCursor(context: CanvasRenderingContext2D, state: OverlayState): void {
  const { view, size, cursorStep, cursorPlace } = state;
  const line = (x0: number, y0: number, x1: number, y1: number): void => {
    for (const [colour, width] of [
      ["rgb(0 0 0 / 55%)", 3],
      ["#ffffff", 1],
    ] as const) {
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.beginPath();
      context.moveTo(x0, y0);
      context.lineTo(x1, y1);
      context.stroke();
    }
  };
  const { left, top } = GUTTER;
  if (cursorStep !== null) {
    const x = left + xToPx(view, size.widthPx, cursorStep);
    if (x >= left && x <= left + size.widthPx) line(x, top, x, top + size.heightPx);
  }
  if (cursorPlace !== null) {
    const y = top + yToPx(view, size.heightPx, cursorPlace + 0.5);
    if (y >= top && y <= top + size.heightPx) line(left, y, left + size.widthPx, y);
  }
}

/** Paint everything over a cleared canvas whose unit is the CSS px. */
export function paintOverlay(
  context: CanvasRenderingContext2D,
  state: OverlayState,
): void {
  paintAxes(context, state);
  context.save();
  context.beginPath();
  context.rect(GUTTER.left, GUTTER.top, state.size.widthPx, state.size.heightPx);
  context.clip();
  paintMarks(context, state);
  paintCursor(context, state);
  context.restore();
  paintPins(context, state);
  const { box } = state;
  if (box === null) return;
  context.fillStyle = "rgb(255 255 255 / 25%)";
  context.strokeStyle = "#ffffff";
  context.lineWidth = 1.5;
  context.fillRect(GUTTER.left + box.x, GUTTER.top + box.y, box.width, box.height);
  context.strokeRect(GUTTER.left + box.x, GUTTER.top + box.y, box.width, box.height);
}
