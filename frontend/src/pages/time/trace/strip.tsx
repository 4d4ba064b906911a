/** The whole recording in small above the timeline, and which kinds of work it holds. */

import { useMemo } from "preact/hooks";
import { Minimap, MINIMAP_PX } from "../../../widgets/minimap/minimap";
import type { ViewProps } from "../../shared/view_props";
import { NAMES_PX } from "./plot/plot";
import type { NsRange } from "./plot/layout";
import type { useSearch } from "./state/moves";
import type { useTraceTiles } from "./tiles/loader";
import { formatNs } from "./words";
import type { TraceFamily, TraceSearchResponse } from "../../../api/types.gen";
import { tokens, type Theme } from "../../../base/tokens";
import { familyColour } from "../profiled/family_colours";
import type { TraceTile } from "./tiles/tile";

export function MapStrip(props: {
  readonly label: string;
  readonly map: TraceMap;
  readonly extent: NsRange;
  readonly shown: { value: NsRange };
  readonly setWindow: (window: NsRange) => void;
  readonly fit: () => void;
}) {
  const { extent } = props;
  const { low, high } = props.shown.value;
  const whole = low <= extent.low && high >= extent.high;
  return (
    <Minimap
      label={props.label}
      draw={props.map.draw}
      words={props.map.words}
      extent={extent}
      range={whole ? null : { low, high }}
      onRange={(range) => {
        if (range === null) props.fit();
        else props.setWindow(range);
      }}
      leftPx={NAMES_PX}
    />
  );
}

export interface TraceMap {
  readonly draw: (context: CanvasRenderingContext2D, widthPx: number) => void;
  /** What heights mean. */
  readonly words: (widthPx: number) => string;
}

export function useMap(
  loader: ReturnType<typeof useTraceTiles>["loader"],
  version: { readonly value: number },
  extent: NsRange,
  theme: ViewProps["theme"],
  hits: ReturnType<typeof useSearch>["hits"],
  hitsShift: number,
): TraceMap {
  // Read, so that tiles that arrive draw it again; most of them change nothing.
  const whole = version.value >= 0 ? loader.whole : null;
  const { low, high } = extent;
  const at = useMemo(() => {
    let known: { readonly widthPx: number; readonly overview: Overview } | null = null;
    return (widthPx: number): Overview | null => {
      if (whole === null) return null;
      if (known?.widthPx !== widthPx) {
        known = { widthPx, overview: overviewOf(whole, low, high, widthPx) };
      }
      return known.overview;
    };
  }, [whole, low, high]);
  const words = (widthPx: number): string => {
    const overview = at(widthPx);
    if (overview === null) return "";
    const { scale, totals } = overview;
    const columnNs = (high - low) / totals.length;
    return scaleWords(scale, (column) => formatNs((column + 0.5) * columnNs));
  };
  const draw = useMemo(
    () => (context: CanvasRenderingContext2D, widthPx: number) =>
      drawOverview(context, widthPx, at(widthPx), low, high, theme, hits, hitsShift),
    [at, theme, hits, hitsShift],
  );
  return { draw, words };
}

/** Kinds of work that are there, most of it first. */
export function useFamilies(
  loader: ReturnType<typeof useTraceTiles>["loader"],
  version: { readonly value: number },
) {
  const whole = version.value >= 0 ? loader.whole : null;
  return useMemo(() => {
    if (whole === null) return [];
    const sums = whole.answer.families.map((family) => ({ family, busy: 0 }));
    whole.answer.family.forEach((family, i) => {
      const sum = sums[family];
      if (sum !== undefined) sum.busy += whole.answer.busy[i] ?? 0;
    });
    return sums
      .filter(({ busy }) => busy > 0)
      .sort(
        (a, b) =>
          Number(isAround(a.family)) - Number(isAround(b.family)) || b.busy - a.busy,
      )
      .map(({ family }) => family);
  }, [whole]);
}

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

/** Of the columns with any work, so many decide the scale; the rest may be spikes. */
const USUAL = 0.95;
/** A column that is at most so many times the usual is no spike. */
const LEAST_SPIKE = 2;
/** What is no spike is not cut: room above the usual. */
const ROOM = 1.2;

export interface OverviewScale {
  /** What a column as tall as the strip stands for; those above are cut off. */
  readonly top: number;
  readonly most: number;
  /** The column of the most. */
  readonly mostAt: number;
  readonly numCut: number;
}

/** Linear; cut where few columns stand far above the others. */
export function overviewScale(totals: ArrayLike<number>): OverviewScale {
  const busy: number[] = [];
  let [most, mostAt] = [0, 0];
  for (let at = 0; at < totals.length; at += 1) {
    const total = totals[at] ?? 0;
    if (total > 0) busy.push(total);
    if (total > most) [most, mostAt] = [total, at];
  }
  const sorted = Float64Array.from(busy).sort();
  const usual = sorted[Math.max(0, Math.ceil(USUAL * sorted.length) - 1)] ?? 0;
  if (!(most > LEAST_SPIKE * usual)) return { top: most, most, mostAt, numCut: 0 };
  const top = ROOM * usual;
  const numCut = busy.reduce((sum, one) => sum + Number(one > top), 0);
  return { top, most, mostAt, numCut };
}

/** What the heights say, for who points at the strip; `when`: how long after the
 * beginning a column is. */
export function scaleWords(
  scale: OverviewScale,
  when: (column: number) => string,
): string {
  if (!(scale.most > 0)) return "";
  const words = `Height: how many slices are under way at once, up to ${round(scale.top)}`;
  if (scale.numCut === 0) return words;
  return `${words}. Columns with a gap near their top go higher and are cut off: up to ${round(scale.most)}, ${when(scale.mostAt)} after the beginning`;
}

function round(value: number): string {
  return value.toLocaleString("en", { maximumSignificantDigits: 2 });
}
