/** Ranks by steps: coarse for everything, sharp for the visible part. */

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import type { Client, Query } from "../../api/client";
import type { HeatmapResponse, Responses, SeriesInfo } from "../../api/types.gen";
import { useLive } from "../../api/use_live";
import type { Live } from "../../api/watch";
import { Heatmap, type HeatmapProps } from "../../widgets/heatmap/heatmap";
import { AROUND_PX, type HeatmapNeed } from "../../widgets/heatmap/layout";
import type { XRange } from "../../widgets/plot/range";
import { pixelRatio } from "../../widgets/plot/canvas";
import { Waiting } from "../../widgets/state/state";
import { lookOf, type ViewProps } from "./view_props";

type HeatRoute = "distributed_heatmap" | "heatmap" | "step_heatmap";

const MOST_PX = 360;
const LEAST_PX = 96;
const ROW_PX = 18;
/** Added to the height of the rows. */
const AIR_PX = 28;

interface HeatAnswers<R extends HeatRoute> {
  readonly coarse: Live<Responses[R]>;
  readonly cells: HeatmapResponse | null;
  /** Cells of the visible part; null until loaded. */
  readonly sharp: HeatmapResponse | null;
  /** Top to bottom; the same array while the ranks are unchanged. */
  readonly ranks: Int32Array;
  readonly setNeed: (need: HeatmapNeed) => void;
}

function cellsOf(data: Responses[HeatRoute] | null): HeatmapResponse | null {
  return data !== null && "cells" in data ? data.cells : data;
}

/** `subject` is the query of the cells; `px` is the width, 0 until known. */
export function useHeatAnswers<R extends HeatRoute>(
  client: Client,
  route: R,
  subject: Query,
  px: number,
  pollMs: number,
  {
    known,
    mostPx = MOST_PX,
  }: {
    readonly known?: Int32Array | null;
    readonly mostPx?: number;
  } = {},
): HeatAnswers<R> {
  const [need, setNeed] = useState<HeatmapNeed | null>(null);
  const ratio = pixelRatio();
  // No more rows than drawn: the server names the shown one of pooled ranks.
  const rows = Math.round((mostPx - AROUND_PX) * ratio);
  const size = { px: Math.round(px * ratio), rows };
  const whole = px === 0 ? null : { ...subject, ...size };
  const coarse = useLive(client, route, whole, pollMs);
  const detail = useLive(client, route, detailQuery(subject, need), pollMs);
  const key = JSON.stringify(subject);
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
    ...{ coarse, cells, setNeed },
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
function detailQuery(subject: Query, need: HeatmapNeed | null): Query | null {
  if (need === null || (need.steps === null && need.ranks === null)) return null;
  return {
    ...subject,
    x0: need.steps?.low ?? null,
    x1: need.steps?.high ?? null,
    px: need.px,
    rows: need.rows,
    ...(need.ranks === null ? {} : { ranks: need.ranks }),
  };
}

function heatHeightPx(numRanks: number, rowPx = ROW_PX, mostPx = MOST_PX): number {
  return Math.min(mostPx, Math.max(LEAST_PX, numRanks * rowPx + AIR_PX));
}

/** Shared with the charts beside it where their x is the step. */
export function useHeatRange(
  view: Pick<ViewProps, "cursor">,
  isShared: boolean,
  range: XRange | null,
  onRange: (range: XRange | null) => void,
): Pick<HeatmapProps, "cursor" | "onRange" | "range"> {
  const [ownRange, setOwnRange] = useState<XRange | null>(null);
  const ownCursor = useSignal<number | null>(null);
  return isShared
    ? { range, onRange, cursor: view.cursor }
    : { range: ownRange, onRange: setOwnRange, cursor: ownCursor };
}

interface RankHeatmapProps extends Omit<
  HeatmapProps,
  | "byteUnit"
  | "detail"
  | "heightPx"
  | "label"
  | "onNeed"
  | "origin"
  | "overview"
  | "pinned"
  | "ranks"
  | "theme"
> {
  readonly view: ViewProps;
  readonly answers: HeatAnswers<HeatRoute>;
  readonly label: (series: SeriesInfo) => string;
  readonly rowPx?: number;
  readonly mostPx?: number;
  readonly waitingPx?: number;
  readonly empty: ComponentChildren;
}

export function RankHeatmap(props: RankHeatmapProps) {
  const { view, answers, label, rowPx, mostPx, waitingPx, empty, ...chart } = props;
  const { coarse, cells, sharp, ranks, setNeed } = answers;
  if (cells === null) {
    const blocksPx = [waitingPx ?? heatHeightPx(0)];
    return <Waiting error={coarse.error} hasContent={false} blocksPx={blocksPx} />;
  }
  if (cells.series === null || cells.numRows === 0) return <>{empty}</>;
  return (
    <Heatmap
      label={label(cells.series)}
      overview={cells}
      detail={sharp}
      ranks={ranks}
      pinned={view.ranks.pinned}
      onNeed={setNeed}
      {...lookOf(view)}
      heightPx={heatHeightPx(ranks.length, rowPx, mostPx)}
      {...chart}
    />
  );
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
