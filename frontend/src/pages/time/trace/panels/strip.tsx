import { useMemo } from "preact/hooks";
import type { TraceFamily } from "../../../../api/types.gen";
import { tokens, type Theme } from "../../../../base/tokens";
import { Minimap, MINIMAP_PX } from "../../../../widgets/minimap/minimap";
import { Legend } from "../../../../widgets/plot/legend";
import type { XRange } from "../../../../widgets/plot/range";
import { partColour } from "../../../../render/palette";
import { NAMES_PX } from "../plot/plot";
import { since } from "../state/params";
import type { Timeline } from "../state/timeline";
import type { TraceTile } from "../tiles/tile";
import { familyWords, formatNs } from "../text";

export function MapStrip(props: { readonly trace: Timeline; readonly label: string }) {
  const { trace, label } = props;
  const { extent, shown, setWindow, fit, whole, searchAnswer, base, view } = trace;
  const { theme } = view;
  const span = extent.high - extent.low;
  const overviewAt = useMemo(() => {
    let cached: Overview | null = null;
    return (widthPx: number): Overview | null => {
      if (cached?.totals.length !== Math.floor(widthPx)) {
        cached = whole && overviewOf(whole, extent, widthPx);
      }
      return cached;
    };
  }, [whole, extent]);
  const draw = useMemo(
    () => (context: CanvasRenderingContext2D, widthPx: number) => {
      context.fillStyle = tokens(theme).surface;
      context.fillRect(0, 0, widthPx, MINIMAP_PX);
      const overview = overviewAt(widthPx);
      if (overview !== null) drawColumns(context, overview, theme);
      if (searchAnswer === null) return;
      context.fillStyle = tokens(theme).link;
      const shift = since(base, searchAnswer.t0) - extent.low;
      for (const start of searchAnswer.startNs) {
        context.fillRect(((start + shift) / span) * widthPx, 0, 1, 5);
      }
    },
    [overviewAt, theme, searchAnswer],
  );
  const { low, high } = shown.value;
  return (
    <Minimap
      label={`${label}: all of the time`}
      draw={draw}
      tooltip={(widthPx) => {
        const overview = overviewAt(widthPx);
        if (overview === null) return "";
        const columnNs = span / overview.totals.length;
        return scaleWords(overview.scale, (column) =>
          formatNs((column + 0.5) * columnNs),
        );
      }}
      extent={extent}
      range={low <= extent.low && high >= extent.high ? null : { low, high }}
      onRange={(range) => (range === null ? fit() : setWindow(range))}
      leftPx={NAMES_PX}
    />
  );
}

const MOST_FAMILIES = 9;

/** Kinds of work that occur, most first. */
export function Families({ trace }: { readonly trace: Timeline }) {
  const { whole, view } = trace;
  const items = useMemo(() => {
    const sums = new Map<TraceFamily, number>();
    whole?.answer.busy.forEach((busy, i) => {
      const family = whole.familyOf(i);
      if (busy > 0) sums.set(family, (sums.get(family) ?? 0) + busy);
    });
    const isLater = (family: TraceFamily) => Number(AROUND.includes(family));
    return [...sums]
      .sort(([a, most], [b, more]) => isLater(a) - isLater(b) || more - most)
      .slice(0, MOST_FAMILIES)
      .map(([family]) => ({
        label: familyWords(family),
        colour: partColour(view.theme, family),
      }));
  }, [whole, view.theme]);
  return <Legend items={items} />;
}

/** Parents of other work: always busy, so they do not show when. */
const AROUND: readonly TraceFamily[] = ["step", "annotation", "python", "other"];

/** By family and px column, without parents unless there is nothing else. */
export function overviewOf(tile: TraceTile, { low, high }: XRange, widthPx: number) {
  const columns = Math.max(1, Math.floor(widthPx));
  const { families, family: familyAt, busy: busyUnits, unitNs } = tile.answer;
  // By family and column, columns innermost.
  const busy = new Float64Array(columns * families.length);
  const totals = new Float64Array(columns);
  const around = families.map((family) => AROUND.includes(family));
  const isWork = familyAt.some((family, i) => !around[family] && tile.levelOf(i) >= 0);
  const scale = columns / Math.max(1, high - low);
  for (let i = 0; i < tile.numPieces; i += 1) {
    const family = familyAt[i] ?? 0;
    if (isWork ? around[family] === true : tile.levelOf(i) > 0) continue;
    const start = ((tile.start[i] ?? 0) - low) * scale;
    const end = ((tile.end[i] ?? 0) - low) * scale;
    const share = ((busyUnits[i] ?? 0) * unitNs * scale) / Math.max(end - start, 1e-9);
    const last = Math.min(columns - 1, Math.floor(end));
    for (let column = Math.max(0, Math.floor(start)); column <= last; column += 1) {
      const inside =
        Math.max(0, Math.min(end, column + 1) - Math.max(start, column)) * share;
      const place = family * columns + column;
      busy[place] = (busy[place] ?? 0) + inside;
      totals[column] = (totals[column] ?? 0) + inside;
    }
  }
  return { families, busy, totals, scale: overviewScale(totals) };
}

type Overview = ReturnType<typeof overviewOf>;

/** Height of uncut columns; search results are above. */
const TALL_PX = MINIMAP_PX - 6;
/** A cut column has this gap near its top. */
const GAP_PX = 2;

function drawColumns(
  context: CanvasRenderingContext2D,
  { families, busy, totals, scale }: Overview,
  theme: Theme,
): void {
  const columns = totals.length;
  const floor = new Float64Array(columns).fill(MINIMAP_PX);
  families.forEach((name, family) => {
    context.fillStyle = partColour(theme, name);
    totals.forEach((total, column) => {
      // A cut column preserves its shares.
      const room = total > scale.top ? MINIMAP_PX / total : TALL_PX / scale.top;
      const tall = (busy[family * columns + column] ?? 0) * room;
      if (!(tall > 0)) return;
      const top = (floor[column] ?? 0) - tall;
      context.fillRect(column, top, 1, tall);
      floor[column] = top;
    });
  });
  context.fillStyle = tokens(theme).surface;
  const gapPx = MINIMAP_PX - TALL_PX - GAP_PX;
  totals.forEach((total, column) => {
    if (total > scale.top) context.fillRect(column, gapPx, 1, GAP_PX);
  });
}

/** Quantile of the busy columns that sets the scale; the rest may be spikes. */
const USUAL = 0.95;
/** Up to this multiple of the usual a column is no spike. */
const LEAST_SPIKE = 2;
/** Factor above the usual: what is no spike is not cut. */
const ROOM = 1.2;

/** Linear; cut where few columns are far above the others. */
export function overviewScale(totals: Float64Array) {
  const sorted = totals.filter((total) => total > 0).sort();
  const most = sorted.at(-1) ?? 0;
  const mostAt = Math.max(0, totals.indexOf(most));
  const usual = sorted[Math.max(0, Math.ceil(USUAL * sorted.length) - 1)] ?? 0;
  /** The value of a column as tall as the strip; taller ones are cut. */
  const top = most > LEAST_SPIKE * usual ? ROOM * usual : most;
  return { top, most, mostAt, numCut: sorted.filter((total) => total > top).length };
}

type OverviewScale = ReturnType<typeof overviewScale>;

/** `when`: how long after the beginning a column is. */
export function scaleWords(
  { top, most, mostAt, numCut }: OverviewScale,
  when: (column: number) => string,
): string {
  if (!(most > 0)) return "";
  const round = (value: number) =>
    value.toLocaleString("en", { maximumSignificantDigits: 2 });
  const text = `Height: how many slices are under way at once, up to ${round(top)}`;
  if (numCut === 0) return text;
  return `${text}. Columns with a gap near their top are cut off: up to ${round(most)}, ${when(mostAt)} after the beginning`;
}
