/** Ranks by steps: coarse for everything, sharp for the visible part. */

import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import type { Query } from "../../api/client";
import type { HeatmapResponse, SeriesInfo } from "../../api/types.gen";
import { useLive } from "../../api/live/use_live";
import { formatRankSet } from "../../model/words/rank_set";
import { cellValue } from "../../render/palette";
import { Heatmap, type HeatmapProps } from "../../widgets/heatmap/heatmap";
import {
  AROUND_PX,
  type CellFacts,
  type HeatmapNeed,
} from "../../widgets/heatmap/layout";
import { pixelRatio } from "../../render/viewport";
import type { XRange } from "../../widgets/plot/range";
import { Waiting } from "../../widgets/state/state";
import { lookOf, type ViewProps } from "./view_props";

type HeatRoute = "distributed_heatmap" | "heatmap" | "step_heatmap";

const MOST_PX = 360;
const LEAST_PX = 96;
const ROW_PX = 18;
/** Added to the height of the rows. */
const AIR_PX = 28;

export interface SharedRange {
  readonly range: XRange | null;
  readonly setRange: (range: XRange | null) => void;
}

interface RankHeatmapProps extends Pick<HeatmapProps, "diverging" | "page" | "pooled"> {
  readonly view: ViewProps;
  readonly route: HeatRoute;
  readonly subject: Query;
  /** The width; 0 until known. */
  readonly px: number;
  /** With charts beside it, where their x is the step. */
  readonly shared?: SharedRange | null;
  /** The drawn ranks, where they are known before the answer. */
  readonly rowRanks?: Int32Array | null;
  readonly mostPx?: number;
  readonly label: (series: SeriesInfo) => string;
  readonly rowPx?: number;
  readonly waitingPx?: number;
  readonly empty: ComponentChildren;
  /** Of pooled ranks, the one that is shown. */
  readonly onPick: (rank: number, cell: CellFacts) => void;
}

export function RankHeatmap(props: RankHeatmapProps) {
  const { view, route, px, shared, rowRanks, mostPx = MOST_PX, rowPx = ROW_PX } = props;
  const { client, run, pollMs } = view;
  const [ownRange, setOwnRange] = useState<XRange | null>(null);
  const [need, setNeed] = useState<HeatmapNeed | null>(null);
  const query = { run: run.id, ranks: view.ranks.filter, ...props.subject };
  const ratio = pixelRatio();
  // No more rows than drawn: the server names the shown one of pooled ranks.
  const rows = Math.round((mostPx - AROUND_PX) * ratio);
  const whole = px === 0 ? null : { ...query, px: Math.round(px * ratio), rows };
  const coarse = useLive(client, route, whole, pollMs);
  const detail = useLive(client, route, detailQuery(query, need), pollMs);
  const key = JSON.stringify(query);
  const kept = useRef<{ sharp: string; ranks: Int32Array }>({
    sharp: "",
    ranks: new Int32Array(),
  });
  if (!detail.stale && detail.data !== null) kept.current.sharp = key;
  const { data: cells, stale } = coarse;
  if (cells === null) {
    const { waitingPx = LEAST_PX } = props;
    return <Waiting error={coarse.error} hasContent={false} blocksPx={[waitingPx]} />;
  }
  if (cells.series === null || cells.numRows === 0) return <>{props.empty}</>;
  // The same array while the ranks are unchanged.
  const next = rowRanks ?? ranksOf(cells, cells.series.numRanks);
  const same = kept.current.ranks;
  if (next.length !== same.length || next.some((rank, i) => rank !== same[i])) {
    kept.current.ranks = next;
  }
  const { ranks } = kept.current;
  // Cells of another subject would mix two meanings.
  const isSharp =
    kept.current.sharp === key && detail.data?.series?.key === cells.series.key;
  const picked = async (cell: CellFacts): Promise<void> =>
    props.onPick(await pickedRank(view, route, query, ranks, cell), cell);
  return (
    <div class={stale ? "stale" : ""} aria-busy={stale}>
      <Heatmap
        {...lookOf(view)}
        {...props}
        ranks={ranks}
        range={shared ? shared.range : ownRange}
        onRange={shared ? shared.setRange : setOwnRange}
        cursor={shared ? view.cursor : undefined}
        label={props.label(cells.series)}
        overview={cells}
        detail={isSharp ? detail.data : null}
        pinned={view.ranks.pinned}
        onNeed={setNeed}
        onPick={(cell) => {
          picked(cell).catch(() => {
            // The page already reports that the server does not answer.
          });
        }}
        heightPx={Math.min(mostPx, Math.max(LEAST_PX, ranks.length * rowPx + AIR_PX))}
      />
    </div>
  );
}

/** null: everything is in sight, so the coarse answer is sharp enough. */
function detailQuery(query: Query, need: HeatmapNeed | null): Query | null {
  if (need === null || (need.steps === null && need.ranks === null)) return null;
  return {
    ...query,
    x0: need.steps?.low ?? null,
    x1: need.steps?.high ?? null,
    px: need.px,
    rows: need.rows,
    ...(need.ranks === null ? {} : { ranks: need.ranks }),
  };
}

/** Pooled rows need one more request. */
async function pickedRank(
  { client }: ViewProps,
  route: HeatRoute,
  query: Query,
  ranks: Int32Array,
  { value, firstRank, lastRank, firstStep, lastStep }: CellFacts,
): Promise<number> {
  if (firstRank === lastRank) return firstRank;
  const inside = [...ranks].filter((rank) => rank >= firstRank && rank <= lastRank);
  const cells = await client.get(route, {
    ...query,
    ranks: formatRankSet(inside),
    x0: firstStep,
    x1: lastStep,
    px: lastStep - firstStep + 1,
    rows: inside.length,
  });
  return rankNearest(cells, value) ?? firstRank;
}

/** The rank with the cell nearest to a value; null: nothing recorded. */
export function rankNearest(answer: HeatmapResponse, value: number): number | null {
  const { values, valueLow, valueHigh, numColumns, rowRank } = answer;
  let [least, rank]: [number, number | null] = [Infinity, null];
  values.forEach((cell, i) => {
    const apart = Math.abs(cellValue(cell, valueLow, valueHigh) - value);
    if (!(apart < least)) return;
    [least, rank] = [apart, rowRank[Math.floor(i / numColumns)] ?? null];
  });
  return rank;
}

export function ranksOf(answer: HeatmapResponse, numRanks: number): Int32Array {
  const ranks: number[] = [];
  answer.rowRank.forEach((first, row) => {
    const next = answer.rowRank[row + 1] ?? Infinity;
    for (let i = 0; i < answer.ranksPerRow && ranks.length < numRanks; i += 1) {
      if (first + i < next) ranks.push(first + i);
    }
  });
  return Int32Array.from(ranks);
}
