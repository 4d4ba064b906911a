/** Ranks by steps: coarse for everything, sharp for the visible part. */

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import type { Query } from "../../api/client";
import type { HeatmapResponse, Responses, SeriesInfo } from "../../api/types.gen";
import { useLive } from "../../api/use_live";
import type { Live } from "../../api/watch";
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

type Shown = Pick<HeatmapProps, "cursor" | "onRange" | "range">;

interface HeatAnswers<R extends HeatRoute> extends Shown {
  readonly view: ViewProps;
  readonly route: R;
  readonly query: Query;
  readonly coarse: Live<Responses[R]>;
  readonly cells: HeatmapResponse | null;
  /** Cells of the visible part; null until loaded. */
  readonly sharp: HeatmapResponse | null;
  /** Top to bottom; the same array while the ranks are unchanged. */
  readonly ranks: Int32Array;
  readonly setNeed: (need: HeatmapNeed) => void;
  readonly mostPx: number;
}

function cellsOf(data: Responses[HeatRoute] | null): HeatmapResponse | null {
  return data !== null && "cells" in data ? data.cells : data;
}

export interface SharedRange {
  readonly range: XRange | null;
  readonly setRange: (range: XRange | null) => void;
}

/** Of the drawn ranks; `px` is the width, 0 until known. */
export function useHeatAnswers<R extends HeatRoute>(
  view: ViewProps,
  route: R,
  subject: Query,
  px: number,
  of: {
    /** With charts beside it, where their x is the step. */
    readonly shared?: SharedRange | null;
    readonly known?: Int32Array | null;
    readonly mostPx?: number;
  } = {},
): HeatAnswers<R> {
  const { client, run, ranks: choice, pollMs } = view;
  const { shared, known, mostPx = MOST_PX } = of;
  const [ownRange, setOwnRange] = useState<XRange | null>(null);
  const ownCursor = useSignal<number | null>(null);
  const [need, setNeed] = useState<HeatmapNeed | null>(null);
  const query = { run: run.id, ranks: choice.filter, ...subject };
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
  const [cells, found] = [cellsOf(coarse.data), cellsOf(detail.data)];
  const num = cells?.series?.numRanks ?? 0;
  const next = known ?? (cells === null ? new Int32Array() : ranksOf(cells, num));
  const same = kept.current.ranks;
  if (next.length !== same.length || next.some((rank, i) => rank !== same[i])) {
    kept.current.ranks = next;
  }
  // Cells of another subject would mix two meanings.
  const isSharp =
    kept.current.sharp === key && partOf(detail.data) === partOf(coarse.data);
  return {
    ...{ view, route, query, coarse, cells, setNeed, mostPx },
    ...(shared
      ? { range: shared.range, onRange: shared.setRange, cursor: view.cursor }
      : { range: ownRange, onRange: setOwnRange, cursor: ownCursor }),
    sharp: isSharp ? found : null,
    ranks: kept.current.ranks,
  };
}

function partOf(data: Responses[HeatRoute] | null): string | null {
  return data !== null && "part" in data
    ? data.part
    : (cellsOf(data)?.series?.key ?? null);
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

type RankHeatmapProps = Pick<HeatmapProps, "diverging" | "pooled" | "page"> & {
  readonly answers: HeatAnswers<HeatRoute>;
  readonly label: (series: SeriesInfo) => string;
  readonly rowPx?: number;
  readonly waitingPx?: number;
  readonly empty: ComponentChildren;
  /** Of pooled ranks, the one that is shown. */
  readonly onPick: (rank: number, cell: CellFacts) => void;
};

export function RankHeatmap(props: RankHeatmapProps) {
  const { answers, label, rowPx = ROW_PX, empty, onPick, ...chart } = props;
  const { waitingPx = LEAST_PX, ...look } = chart;
  const { view, coarse, cells, sharp, ranks, setNeed, mostPx } = answers;
  const { range, onRange, cursor } = answers;
  if (cells === null) {
    return <Waiting error={coarse.error} hasContent={false} blocksPx={[waitingPx]} />;
  }
  if (cells.series === null || cells.numRows === 0) return <>{empty}</>;
  const heightPx = Math.max(LEAST_PX, ranks.length * rowPx + AIR_PX);
  return (
    <Heatmap
      {...{ range, onRange, cursor, ranks, ...look, ...lookOf(view) }}
      label={label(cells.series)}
      overview={cells}
      detail={sharp}
      pinned={view.ranks.pinned}
      onNeed={setNeed}
      onPick={(cell) =>
        void pickedRank(answers, cell).then(
          (rank) => onPick(rank, cell),
          () => {
            // The page already reports that the server does not answer.
          },
        )
      }
      heightPx={Math.min(mostPx, heightPx)}
    />
  );
}

/** Pooled rows need one more request. */
async function pickedRank(
  { view, route, query, ranks }: HeatAnswers<HeatRoute>,
  { value, firstRank, lastRank, firstStep, lastStep }: CellFacts,
): Promise<number> {
  if (firstRank === lastRank) return firstRank;
  const inside = [...ranks].filter((rank) => rank >= firstRank && rank <= lastRank);
  const answer = await view.client.get(route, {
    ...query,
    ranks: formatRankSet(inside),
    x0: firstStep,
    x1: lastStep,
    px: lastStep - firstStep + 1,
    rows: inside.length,
  });
  const cells = cellsOf(answer);
  return (cells && rankNearest(cells, value)) ?? firstRank;
}

/** The rank with the cell nearest to a value; null: nothing recorded. */
export function rankNearest(answer: HeatmapResponse, value: number): number | null {
  const { values, valueLow, valueHigh, numColumns, rowRank } = answer;
  let [least, found]: [number, number | null] = [Infinity, null];
  values.forEach((cell, i) => {
    const apart = Math.abs(cellValue(cell, valueLow, valueHigh) - value);
    if (!(apart < least)) return;
    [least, found] = [apart, rowRank[Math.floor(i / numColumns)] ?? null];
  });
  return found;
}

export function ranksOf(answer: HeatmapResponse, known: number): Int32Array {
  const ranks: number[] = [];
  answer.rowRank.forEach((first, row) => {
    const next = answer.rowRank[row + 1] ?? Infinity;
    for (let i = 0; i < answer.ranksPerRow && ranks.length < known; i += 1) {
      if (first + i < next) ranks.push(first + i);
    }
  });
  return Int32Array.from(ranks);
}
