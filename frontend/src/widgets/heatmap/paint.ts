/** Axes, marks, pins and the cross hair: what is drawn over the cells. */

import type { Mark } from "../../api/types.gen";
import type { Theme } from "../../base/tokens";
import { tokens } from "../../base/tokens";
import { xTicks, type Tick } from "../../model/lines/axis";
import { wholeTicks } from "../../model/lines/ticks";
import type { RectPx, SizePx, Viewport } from "../../render/viewport";
import { xToPx, yToPx } from "../../render/viewport";
import { FLAGGED_SHARE, hexOf, paletteAt } from "../../render/palette";
import { strokeLine } from "../export/figure";
import { FONT, type Pen } from "../export/pen";
import { AXIS_PX, clipTo, paintAxes as paintPlotAxes, SIDES } from "../plot/axes";
import { markLook } from "../line_chart/marks";
import { heatColours, paletteOf } from "./colours";
import { placeOf, type Domain } from "./layout";

export const GUTTER = { ...SIDES, top: 6, bottom: AXIS_PX } as const;

/** Steps of the colour scale in a picture. */
const SCALE_STEPS = 40;
const SCALE_STEP_PX = 4;

/** Labels of the rank axis need this much room. */
const LABEL_PX = 12;

export function plotSize(widthPx: number, heightPx: number): SizePx {
  return {
    widthPx: Math.max(1, widthPx - GUTTER.left - GUTTER.right),
    heightPx: Math.max(1, heightPx - GUTTER.top - GUTTER.bottom),
  };
}

/** The plot's size with its gutters. */
export function fullSize({ widthPx, heightPx }: SizePx): SizePx {
  return {
    widthPx: widthPx + GUTTER.left + GUTTER.right,
    heightPx: heightPx + GUTTER.top + GUTTER.bottom,
  };
}

/** Ticks of the rank axis: places, named by the rank that stands there. */
function rankTicks(
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

function stepTicks(view: Viewport, widthPx: number): readonly Tick[] {
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

function paintAxes(pen: Pen, state: OverlayState): void {
  const { view, size, ranks, theme } = state;
  const toY = (y: number): number => yToPx(view, size.heightPx, y);
  const pins = pinPlaces(state).map((pin) => pin.y);
  const free = (px: number): boolean =>
    pins.every((pin) => Math.abs(pin - px) >= LABEL_PX);
  paintPlotAxes(pen, {
    ...{ left: GUTTER.left, top: GUTTER.top, size, theme, grid: "none" },
    x: stepTicks(view, size.widthPx),
    y: rankTicks(view, ranks, size.heightPx).filter(({ value }) => free(toY(value))),
    toX: (x) => xToPx(view, size.widthPx, x),
    toY,
  });
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

function paintPins(pen: Pen, state: OverlayState): void {
  const { link } = tokens(state.theme);
  pen.font = `bold ${FONT}`;
  pen.textAlign = "right";
  pen.fillStyle = link;
  pen.strokeStyle = link;
  pen.lineWidth = 1.5;
  let labelled = -Infinity;
  for (const { rank, top, y, bottom } of pinPlaces(state)) {
    const middle = GUTTER.top + y;
    pen.beginPath();
    pen.moveTo(GUTTER.left - 1, middle);
    pen.lineTo(GUTTER.left - 7, middle - 4);
    pen.lineTo(GUTTER.left - 7, middle + 4);
    pen.fill();
    // Pins too close to name keep their arrow; zooming in names them.
    if (y - labelled >= LABEL_PX) {
      pen.fillText(rank.toString(), GUTTER.left - 10, middle + 4);
      labelled = y;
    }
    if (bottom - top < 4) continue;
    const { widthPx } = state.size;
    pen.strokeRect(GUTTER.left - 2, GUTTER.top + top, widthPx + 4, bottom - top);
  }
}

/** A mark of a rank stands on its row; one of the whole run is a line. */
function paintMarks(pen: Pen, state: OverlayState): void {
  const { view, size, ranks, theme } = state;
  for (const mark of state.marks) {
    if (mark.x < view.x0 || mark.x > view.x1) continue;
    const look = markLook(mark.kind, theme);
    const x = GUTTER.left + xToPx(view, size.widthPx, mark.x);
    pen.strokeStyle = look.colour;
    pen.lineWidth = look.widthPx;
    if (mark.rank === null) {
      pen.setLineDash([...look.dash]);
      strokeLine(pen, x, GUTTER.top, x, GUTTER.top + size.heightPx);
      pen.setLineDash([]);
      continue;
    }
    const place = placeOf(ranks, mark.rank);
    if (mark.kind !== "oom" || ranks[place] !== mark.rank) continue;
    const y = GUTTER.top + yToPx(view, size.heightPx, place + 0.5);
    paintCross(pen, x, y);
  }
}

/** An OOM: a cross in a ring, readable on every colour of the palette. */
function paintCross(pen: Pen, x: number, y: number): void {
  for (const [colour, width] of [
    ["#ffffff", 5],
    ["#b00020", 2.25],
  ] as const) {
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    pen.beginPath();
    pen.arc(x, y, 7, 0, 2 * Math.PI);
    pen.moveTo(x - 3.5, y - 3.5);
    pen.lineTo(x + 3.5, y + 3.5);
    pen.moveTo(x + 3.5, y - 3.5);
    pen.lineTo(x - 3.5, y + 3.5);
    pen.stroke();
  }
}

function paintCursor(pen: Pen, state: OverlayState): void {
  const { view, size, cursorStep, cursorPlace } = state;
  const line = (x0: number, y0: number, x1: number, y1: number): void => {
    for (const [colour, width] of [
      ["rgb(0 0 0 / 55%)", 3],
      ["#ffffff", 1],
    ] as const) {
      pen.strokeStyle = colour;
      pen.lineWidth = width;
      strokeLine(pen, x0, y0, x1, y1);
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
export function paintOverlay(pen: Pen, state: OverlayState): void {
  paintAxes(pen, state);
  clipTo(pen, GUTTER.left, GUTTER.top, state.size.widthPx, state.size.heightPx);
  paintMarks(pen, state);
  paintCursor(pen, state);
  pen.restore();
  paintPins(pen, state);
  const { box } = state;
  if (box === null) return;
  pen.fillStyle = "rgb(255 255 255 / 25%)";
  pen.strokeStyle = "#ffffff";
  pen.lineWidth = 1.5;
  pen.fillRect(GUTTER.left + box.x, GUTTER.top + box.y, box.width, box.height);
  pen.strokeRect(GUTTER.left + box.x, GUTTER.top + box.y, box.width, box.height);
}

/** What the colours mean, in one row of a picture. */
export function paintScale(
  pen: Pen,
  domain: Domain,
  theme: Theme,
  [low, high]: readonly [low: string, high: string],
): void {
  pen.font = FONT;
  pen.fillStyle = tokens(theme).text;
  pen.textBaseline = "alphabetic";
  pen.fillText(low, GUTTER.left, 9);
  const left = GUTTER.left + pen.measureText(low).width + 8;
  for (let step = 0; step < SCALE_STEPS; step += 1) {
    const share = step / (SCALE_STEPS - 1);
    const flagged = domain.capacity && share > 1 - FLAGGED_SHARE;
    const own = hexOf(paletteAt(paletteOf(domain, theme), share));
    pen.fillStyle = flagged ? heatColours(theme).flag : own;
    // Each reaches below the next: no seam shows, however large the picture is drawn.
    const wide = step + 1 < SCALE_STEPS ? SCALE_STEP_PX + 1 : SCALE_STEP_PX;
    pen.fillRect(left + step * SCALE_STEP_PX, 0, wide, 10);
  }
  pen.fillStyle = tokens(theme).text;
  pen.fillText(high, left + SCALE_STEPS * SCALE_STEP_PX + 8, 9);
}
