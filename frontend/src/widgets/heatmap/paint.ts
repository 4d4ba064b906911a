import type { Mark, HeatmapResponse } from "../../api/types.gen";
import { tokens, type Theme } from "../../base/tokens";
import type { Tick } from "../../model/lines/axis";
import { lowerBound } from "../../model/lines/polyline";
import { wholeTicks } from "../../model/lines/ticks";
import {
  buildLut,
  FLAGGED_SHARE,
  hexOf,
  paletteAt,
  pixelOf,
  type PaletteName,
} from "../../render/palette";
import type { SceneColours } from "../../render/raster/scene";
import { xToPx, yToPx, type Viewport } from "../../render/viewport";
import { strokeLine } from "../export/figure";
import { FONT, type Pen } from "../export/pen";
import { markLook } from "../line_chart/marks";
import type { LegendEntry } from "../plot/legend";
import type { PlotSight } from "../plot/reader";
import type { Domain } from "./layout";

const LABEL_PX = 12;

interface OverlayLook {
  readonly ranks: Int32Array;
  readonly marks: readonly Mark[];
  readonly pinned: readonly number[];
  readonly theme: Theme;
}

/** Named by rank; none where a pin is named. */
export function rankTicks(
  view: Viewport,
  most: number,
  heightPx: number,
  look: OverlayLook,
): readonly Tick[] {
  const pins = pinPlaces(view, heightPx, look);
  const { values } = wholeTicks(view.y0, view.y1 - 1, most);
  return values.flatMap((place) => {
    const rank = look.ranks[place];
    const px = yToPx(view, heightPx, place + 0.5);
    const isFree = pins.every(({ y }) => Math.abs(y - px) >= LABEL_PX);
    if (rank === undefined || !isFree) return [];
    return [{ value: place + 0.5, text: rank.toString() }];
  });
}

/** In view; px of the plot. */
function pinPlaces(view: Viewport, heightPx: number, { ranks, pinned }: OverlayLook) {
  return pinned.flatMap((rank) => {
    const place = lowerBound(ranks, rank);
    if (ranks[place] !== rank) return [];
    const top = yToPx(view, heightPx, place);
    const bottom = yToPx(view, heightPx, place + 1);
    if (bottom < 0 || top > heightPx) return [];
    return [{ rank, top, y: (top + bottom) / 2, bottom }];
  });
}

export function paintPins(pen: Pen, seen: PlotSight, look: OverlayLook): void {
  const { left, view, size } = seen;
  const { link } = tokens(look.theme);
  pen.font = `bold ${FONT}`;
  pen.textAlign = "right";
  pen.fillStyle = pen.strokeStyle = link;
  pen.lineWidth = 1.5;
  let labelled = -Infinity;
  for (const { rank, top, y, bottom } of pinPlaces(view, size.heightPx, look)) {
    const middle = seen.top + y;
    pen.beginPath();
    pen.moveTo(left - 1, middle);
    pen.lineTo(left - 7, middle - 4);
    pen.lineTo(left - 7, middle + 4);
    pen.fill();
    // Pins too close to name have only their arrow; zooming in names them.
    if (y - labelled >= LABEL_PX) {
      pen.fillText(rank.toString(), left - 10, middle + 4);
      labelled = y;
    }
    if (bottom - top < 4) continue;
    pen.strokeRect(left - 2, seen.top + top, size.widthPx + 4, bottom - top);
  }
}

/** A mark of a rank is on its row; one of the whole run is a line. */
export function paintMarks(
  pen: Pen,
  { view, size }: PlotSight,
  { ranks, marks, theme }: OverlayLook,
): void {
  for (const mark of marks) {
    if (mark.x < view.x0 || mark.x > view.x1) continue;
    const look = markLook(mark.kind, theme);
    const x = xToPx(view, size.widthPx, mark.x);
    pen.strokeStyle = look.colour;
    pen.lineWidth = look.widthPx;
    if (mark.rank === null) {
      pen.setLineDash(look.dash);
      strokeLine(pen, x, 0, x, size.heightPx);
      pen.setLineDash([]);
      continue;
    }
    const place = lowerBound(ranks, mark.rank);
    if (mark.kind !== "oom" || ranks[place] !== mark.rank) continue;
    paintCross(pen, x, yToPx(view, size.heightPx, place + 0.5));
  }
}

/** Readable on every colour of the palette. */
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

const SCALE_STEPS = 12;

function paletteOf({ diverging }: Domain, theme: Theme): PaletteName {
  if (!diverging) return "viridis";
  return theme === "dark" ? "diverging_dark" : "diverging_light";
}

/** `flag`: the top 3 % of the capacity; far from the palette's bright end. */
const COLOURS = {
  light: { flag: "#e0003c", absent: "#f3f3f3", accent: "#b8b8b8" },
  dark: { flag: "#ff2d55", absent: "#3a3a3a", accent: "#707070" },
} as const satisfies Record<Theme, unknown>;

/** Every answer is quantised to its own range, so each has its own table. */
export function sceneColours(
  answers: Readonly<Record<string, HeatmapResponse | null>>,
  domain: Domain,
  theme: Theme,
): SceneColours {
  const { flag, absent, accent } = COLOURS[theme];
  const cells = Object.entries(answers).flatMap(([layer, answer]) => {
    if (answer === null) return [];
    const lut = buildLut({
      palette: paletteOf(domain, theme),
      valueLow: answer.valueLow,
      valueHigh: answer.valueHigh,
      domainLow: domain.low,
      domainHigh: domain.high,
      flagFrom: domain.capacity ? domain.high * (1 - FLAGGED_SHARE) : null,
      flagColour: flag,
      absentColour: absent,
    });
    return [[layer, { lut, absentAccent: pixelOf(accent) }] as const];
  });
  return { background: pixelOf(tokens(theme).bg), cells: new Map(cells) };
}

export function scaleOf(
  { low, high, capacity, diverging }: Domain,
  theme: Theme,
  text: (value: number) => string,
): readonly LegendEntry[] {
  const { flag, absent, accent } = COLOURS[theme];
  const palette = paletteOf({ low, high, capacity, diverging }, theme);
  const scale = Array.from({ length: SCALE_STEPS + 1 }, (_, i) => {
    const share = i / SCALE_STEPS;
    const isFlagged = capacity && share > 1 - FLAGGED_SHARE;
    return isFlagged ? flag : hexOf(paletteAt(palette, share));
  });
  const label = diverging
    ? `−${text(-low)} to +${text(high)}`
    : `${text(low)} to ${text(high)}${capacity ? " capacity" : ""}`;
  const help = capacity
    ? "The top 3 % of the capacity have their own colour"
    : undefined;
  return [
    { label, colour: flag, scale, help },
    { label: "not recorded", colour: absent, hatch: accent },
  ];
}
