/** What a heatmap of ranks by steps asks for: all of it coarsely, and what is in sight sharply. */

import { useRef, useState } from "preact/hooks";
import type { Client, Query } from "../../api/client";
import type { HeatmapResponse, Responses } from "../../api/types.gen";
import { useLive } from "../../api/use_live";
import type { Live } from "../../api/watch";
import { formatRankSet } from "../../base/rank_set";
import { plotSize } from "../../widgets/heatmap/paint";
import { pixelRatio } from "../../widgets/plot/canvas";
import type { HeatmapNeed } from "../../widgets/heatmap/types";
import { detailQuery } from "./heat_detail";

type HeatRoute = "step_heatmap" | "distributed_heatmap";

/** The tallest a heatmap of this view becomes, in CSS px. */
const MOST_PX = 360;
const LEAST_PX = 96;
const ROW_PX = 18;

export interface HeatAnswers<R extends HeatRoute> {
  /** The coarse answer with its state; its cells are the heatmap's overview. */
  readonly coarse: Live<Responses[R]>;
  /** The sharp cells of what is in sight; null until they are there. */
  readonly sharp: HeatmapResponse | null;
  /** Ranks from top to bottom; the same array while they are the same ranks. */
  readonly ranks: Int32Array;
  readonly setNeed: (need: HeatmapNeed) => void;
}

/** `subject` tells what the cells are; `px` is the width, 0 until it is known. */
export function useHeatAnswers<R extends HeatRoute>(
  client: Client,
  route: R,
  subject: Query,
  px: number,
  pollMs: number,
): HeatAnswers<R> {
  const [need, setNeed] = useState<HeatmapNeed | null>(null);
  const ratio = pixelRatio();
  // No more rows than are drawn: the server says which of pooled ranks is shown.
  const rows = plotSize(px, MOST_PX).heightPx;
  const size = { px: Math.round(px * ratio), rows: Math.round(rows * ratio) };
  const coarse = useLive(
    client,
    route,
    px === 0 ? null : { ...subject, ...size },
    pollMs,
  );
  const detail = useLive(client, route, detailQuery(subject, need), pollMs);
  const key = JSON.stringify(subject);
  const sharpOf = useRef("");
  if (!detail.stale && detail.data !== null) sharpOf.current = key;
  const kept = useRef<Int32Array>(new Int32Array());
  const cells = coarse.data?.cells ?? null;
  const next =
    cells === null ? new Int32Array() : ranksOf(cells, cells.series?.numRanks ?? 0);
  if (formatRankSet([...next]) !== formatRankSet([...kept.current]))
    kept.current = next;
  // Cells of another part would mix two meanings in one picture.
  const isSharp = sharpOf.current === key && detail.data?.part === coarse.data?.part;
  return {
    coarse,
    sharp: isSharp ? (detail.data?.cells ?? null) : null,
    ranks: kept.current,
    setNeed,
  };
}

/** As tall as its ranks, within what is readable and what fits. */
export function heatHeightPx(numRanks: number): number {
  return Math.min(MOST_PX, Math.max(LEAST_PX, numRanks * ROW_PX + 28));
}

/** Every rank that the answer's rows stand for. */
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
