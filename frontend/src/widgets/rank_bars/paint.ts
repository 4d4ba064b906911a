import { tokens, type Theme } from "../../base/tokens";
import { yToPx } from "../../render/viewport";
import { strokeLine } from "../export/figure";
import type { Pen } from "../export/pen";
import type { PlotSight } from "../plot/reader";
import { barPx, type Bars } from "./bars";

export interface BarLook {
  readonly strip: Bars;
  readonly places: readonly number[];
  /** null: none is chosen. */
  readonly rank: number | null;
  /** Ranks that are not faded; null: all. */
  readonly filter: ReadonlySet<number> | null;
  readonly lines: readonly BarLine[];
  readonly theme: Theme;
}

export interface BarLine {
  readonly value: number;
  readonly label: string;
  readonly colour: string;
  readonly dash: readonly number[];
}

/** 0 normal, 1 outlier, 2 out of memory. */
function toneOf({ numOoms, outliers, rank }: Bars, i: number): 0 | 1 | 2 {
  if ((numOoms?.[i] ?? 0) > 0) return 2;
  return outliers?.includes(rank[i] ?? -1) === true ? 1 : 0;
}

function seenPlaces({ view }: PlotSight, { places }: BarLook): readonly number[] {
  const first = Math.max(0, Math.floor(view.x0));
  const end = Math.min(places.length, Math.ceil(view.x1));
  return Array.from({ length: Math.max(0, end - first) }, (_, index) => first + index);
}

/** Outliers last: bars thinner than a px would hide them. */
export function paintBars(pen: Pen, seen: PlotSight, look: BarLook): void {
  const { strip, places, rank, filter, theme, lines } = look;
  const { view, size } = seen;
  const { grid, link, warn, bad } = tokens(theme);
  const colours = [link, warn, bad] as const;
  const bars = seenPlaces(seen, look).map((place) => {
    const i = places[place] ?? -1;
    const own = strip.rank[i] ?? -1;
    const tone = toneOf(strip, i);
    const isDimmed = filter?.has(own) === false || (rank !== null && own !== rank);
    const isStrong = !isDimmed && (own === rank || tone > 0);
    const strength = (isDimmed ? 0.4 : 1) * (isStrong ? 1 : 0.6);
    const y = yToPx(view, size.heightPx, strip.peakBytes[i] ?? NaN);
    return { span: barPx(place, seen), tone, strength, y };
  });
  bars.sort((a, b) => a.tone - b.tone || a.strength - b.strength);
  for (const { span, tone, strength, y } of bars) {
    const isAbsent = Number.isNaN(y);
    const top = isAbsent
      ? size.heightPx - 2
      : Math.min(size.heightPx - 1, Math.round(y));
    pen.fillStyle = isAbsent ? grid : colours[tone];
    pen.globalAlpha = isAbsent ? 1 : strength;
    pen.fillRect(span[0], top, span[1], size.heightPx - top);
  }
  pen.globalAlpha = 1;
  for (const { value, colour, dash } of lines) {
    const y = Math.round(yToPx(view, size.heightPx, value)) + 0.5;
    pen.strokeStyle = colour;
    pen.lineWidth = 1;
    pen.setLineDash(dash);
    strokeLine(pen, 0, y, size.widthPx, y);
  }
  pen.setLineDash([]);
}

/** An OOM has a cross, not only a colour. */
export function paintCrosses(pen: Pen, seen: PlotSight, look: BarLook): void {
  const { strip, places, theme } = look;
  const { left, top, view, size } = seen;
  pen.strokeStyle = tokens(theme).bad;
  pen.lineWidth = 2;
  for (const place of seenPlaces(seen, look)) {
    const i = places[place] ?? -1;
    const value = strip.peakBytes[i] ?? NaN;
    if (toneOf(strip, i) < 2 || Number.isNaN(value)) continue;
    const [from, wide] = barPx(place, seen);
    const x = left + from + wide / 2;
    const y = top + yToPx(view, size.heightPx, value) - 8;
    strokeLine(pen, x - 3.5, y - 3.5, x + 3.5, y + 3.5);
    strokeLine(pen, x - 3.5, y + 3.5, x + 3.5, y - 3.5);
  }
}
