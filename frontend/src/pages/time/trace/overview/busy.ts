/** All of the time in a strip: how busy the outermost levels are, by kind of work. */

import type { TraceFamily, TraceSearchResponse } from "../../../../api/types.gen";
import { tokens, type Theme } from "../../../../base/tokens";
import { MINIMAP_PX } from "../../../../widgets/minimap/minimap";
import { familyColour } from "../../profiled/family_colours";
import { overviewScale, type OverviewScale } from "./scale";
import type { TraceTile } from "../tiles/tile";

/** What everything else lies in: it is always busy, and says nothing of when. */
const AROUND: readonly TraceFamily[] = ["step", "annotation", "python", "other"];

export function isAround(family: TraceFamily): boolean {
  return AROUND.includes(family);
}

/** Busy time by family and px column: of what work there is, else of all. Pure. */
export function busyColumns(
  tile: TraceTile,
  lowNs: number,
  highNs: number,
  widthPx: number,
): { readonly families: readonly number[]; readonly busy: Float64Array } {
  const columns = Math.max(1, Math.floor(widthPx));
  const { families } = tile.answer;
  const busy = new Float64Array(columns * families.length);
  const around = families.map((family) => AROUND.includes(family));
  const isWork = tile.answer.family.some((family) => around[family] === false);
  const scale = columns / Math.max(1, highNs - lowNs);
  for (let i = 0; i < tile.numPieces; i += 1) {
    const level = tile.answer.lanes[tile.lane[i] ?? 0]?.level ?? 0;
    if (isWork ? around[tile.answer.family[i] ?? 0] === true : level > 0) continue;
    const start = ((tile.start[i] ?? 0) - lowNs) * scale;
    const end = ((tile.end[i] ?? 0) - lowNs) * scale;
    const wide = Math.max(end - start, 1e-9);
    const share = ((tile.answer.busy[i] ?? 0) * tile.answer.unitNs * scale) / wide;
    const family = (tile.answer.family[i] ?? 0) * columns;
    const last = Math.min(columns - 1, Math.floor(end));
    for (let at = Math.max(0, Math.floor(start)); at <= last; at += 1) {
      const inside = Math.min(end, at + 1) - Math.max(start, at);
      busy[family + at] = (busy[family + at] ?? 0) + Math.max(0, inside) * share;
    }
  }
  return { families: families.map((_, i) => i), busy };
}

/** Busy columns, and how tall they are. */
export interface Overview {
  readonly tile: TraceTile;
  /** Of `busyColumns`. */
  readonly busy: Float64Array;
  readonly totals: Float64Array;
  readonly scale: OverviewScale;
}

export function overviewOf(
  tile: TraceTile,
  lowNs: number,
  highNs: number,
  widthPx: number,
): Overview {
  const { busy } = busyColumns(tile, lowNs, highNs, widthPx);
  const columns = Math.max(1, Math.floor(widthPx));
  const totals = new Float64Array(columns);
  for (let i = 0; i < busy.length; i += 1) {
    totals[i % columns] = (totals[i % columns] ?? 0) + (busy[i] ?? 0);
  }
  return { tile, busy, totals, scale: overviewScale(totals) };
}

/** The strip's height for columns that are not cut; search results stand above. */
const TALL_PX = MINIMAP_PX - 6;
/** A column that is cut goes on to the top, with a gap where it is. */
const GAP_PX = 2;

export function drawOverview(
  context: CanvasRenderingContext2D,
  widthPx: number,
  overview: Overview | null,
  lowNs: number,
  highNs: number,
  theme: Theme,
  hits: TraceSearchResponse | null,
  hitsShift: number,
): void {
  const { surface, link } = tokens(theme);
  context.fillStyle = surface;
  context.fillRect(0, 0, widthPx, MINIMAP_PX);
  if (overview !== null) drawColumns(context, overview, theme, surface);
  if (hits === null) return;
  context.fillStyle = link;
  for (const start of hits.startNs) {
    const x = ((start + hitsShift - lowNs) / (highNs - lowNs)) * widthPx;
    context.fillRect(x, 0, 1, 5);
  }
}

function drawColumns(
  context: CanvasRenderingContext2D,
  { tile, busy, totals, scale }: Overview,
  theme: Theme,
  surface: string,
): void {
  const columns = totals.length;
  const floor = new Float64Array(columns);
  tile.answer.families.forEach((name, family) => {
    context.fillStyle = familyColour(theme, name);
    for (let at = 0; at < columns; at += 1) {
      const total = totals[at] ?? 0;
      // One that is cut keeps the shares of its kinds of work.
      const room = total > scale.top ? MINIMAP_PX / total : TALL_PX / scale.top;
      const tall = (busy[family * columns + at] ?? 0) * room;
      if (!(tall > 0)) continue;
      const below = floor[at] ?? 0;
      context.fillRect(at, MINIMAP_PX - below - tall, 1, tall);
      floor[at] = below + tall;
    }
  });
  if (scale.numCut === 0) return;
  context.fillStyle = surface;
  totals.forEach((total, at) => {
    if (total > scale.top)
      context.fillRect(at, MINIMAP_PX - TALL_PX - GAP_PX, 1, GAP_PX);
  });
}
