/** The heatmap under the chart: asks for the coarse and for the sharp answer. */

import { useSignal } from "@preact/signals";
import { useRef, useState } from "preact/hooks";
import type { Client, Query } from "../../../api/client";
import type { SeriesInfo, HeatmapResponse } from "../../../api/types.gen";
import { useLive } from "../../../api/use_live";
import { formatRankSet, parseRankSet } from "../../../base/rank_set";
import { originOf } from "../../../model/words/origin";
import type { ExportSource } from "../../../widgets/export/source";
import { Heatmap } from "../../../widgets/heatmap/heatmap";
import type { CellPick, HeatmapNeed } from "../../../widgets/heatmap/types";
import type { XRange } from "../../../widgets/line_chart/types";
import { Failure, Skeleton } from "../../../widgets/state/state";
import { detailQuery } from "../heat_detail";
import type { ViewProps } from "../view_props";
import { seriesLabel } from "./lines";
import type { TimelineParams } from "./params";

const ROW_PX = 20;
const LEAST_PX = 96;
const MOST_PX = 420;

export interface RankMapProps {
  readonly view: ViewProps;
  readonly params: TimelineParams;
  /** Known once the chart above has its answer; tells twins among them apart. */
  readonly available: readonly SeriesInfo[] | null;
  /** All ranks of the run; null until they are known. */
  readonly known: Int32Array | null;
  /** Shared with the chart where its x is the step; null where it is not. */
  readonly range: XRange | null;
  readonly setRange: (range: XRange | null) => void;
  readonly px: number;
  readonly exporter: { current: ExportSource | null };
  /** How far each rank is from the median of all, in place of its values. */
  readonly excess?: boolean;
  /** The tallest it becomes. */
  readonly mostPx?: number;
  readonly onPick: (rank: number, step: number) => void;
}

export function RankMap(props: RankMapProps) {
  const { view, params, available, known, px, excess = false } = props;
  const { mostPx = MOST_PX } = props;
  const { client, run, ranks: choice, pollMs } = view;
  const onSteps = params.x === "step";
  const [ownRange, setOwnRange] = useState<XRange | null>(null);
  const ownCursor = useSignal<number | null>(null);
  const [need, setNeed] = useState<HeatmapNeed | null>(null);
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  const subject = {
    run: run.id,
    ranks: choice.filter,
    series: params.series,
    phase: params.phase,
    of: excess ? "excess" : null,
  };
  const size = { px: Math.round(px * ratio), rows: Math.round(mostPx * ratio) };
  const overview = useLive(
    client,
    "heatmap",
    px === 0 ? null : { ...subject, ...size },
    pollMs,
  );
  const detail = useLive(client, "heatmap", detailQuery(subject, need), pollMs);
  const subjectKey = JSON.stringify(subject);
  const kept = useRef<Int32Array>(new Int32Array());
  const sharpOf = useRef<{ key: string; need: HeatmapNeed | null }>({ key: "", need });
  if (!detail.stale && detail.data !== null)
    sharpOf.current = { key: subjectKey, need };

  const answer = overview.data;
  if (answer === null) {
    return overview.error === null ? (
      <Skeleton heightPx={mostPx} />
    ) : (
      <Failure failure={overview.error} />
    );
  }
  if (answer.series === null || answer.numRows === 0) return null;
  const found = known ?? ranksOfRows(answer, run.numRanks);
  kept.current = keepIfEqual(kept.current, drawnRanks(found, choice.filter));
  const ranks = kept.current;
  const pick = (picked: CellPick): void => {
    pickedRank(client, subject, ranks, picked).then(
      (rank) => props.onPick(rank, picked.firstStep),
      () => {
        // The page already says that the server does not answer.
      },
    );
  };
  // A sharp answer of another series would mix two meanings in one picture.
  const sharp =
    detail.data?.series?.key === answer.series.key && sharpOf.current.key === subjectKey
      ? detail.data
      : null;
  return (
    <Heatmap
      label={`${seriesLabel(answer.series, available ?? [])}${excess ? " beyond the median rank" : " by rank and step"}`}
      overview={answer}
      detail={sharp}
      ranks={ranks}
      pinned={choice.pinned}
      range={onSteps ? props.range : ownRange}
      onRange={onSteps ? props.setRange : setOwnRange}
      onNeed={setNeed}
      onPick={pick}
      cursor={onSteps ? view.cursor : ownCursor}
      theme={view.theme}
      byteUnit={view.byteUnit}
      {...(excess ? { diverging: true, pooled: "farthest" } : {})}
      heightPx={Math.min(mostPx, Math.max(LEAST_PX, ranks.length * ROW_PX + 28))}
      origin={originOf(run)}
      exporter={props.exporter}
    />
  );
}

/** The rank that holds the peak of a cell: one more question where rows are pooled. */
async function pickedRank(
  client: Client,
  subject: Query,
  ranks: Int32Array,
  picked: CellPick,
): Promise<number> {
  const { firstRank, lastRank, firstStep, lastStep } = picked;
  if (firstRank === lastRank) return firstRank;
  const inside = [...ranks].filter((rank) => rank >= firstRank && rank <= lastRank);
  const answer = await client.get("heatmap", {
    ...subject,
    ranks: formatRankSet(inside),
    x0: firstStep,
    x1: lastStep,
    px: lastStep - firstStep + 1,
    rows: inside.length,
  });
  return highestRank(answer) ?? firstRank;
}

/** Known ranks narrowed by the filter; a filter that cannot be read narrows nothing. */
export function drawnRanks(known: Int32Array, filter: string): Int32Array {
  if (filter === "") return known;
  const parsed = parseRankSet(filter);
  if (!parsed.ok) return known;
  const wanted = new Set(parsed.ranks);
  return known.filter((rank) => wanted.has(rank));
}

/** The ranks an answer's rows stand for, before the list of all ranks has arrived. */
export function ranksOfRows(answer: HeatmapResponse, numRanks: number): Int32Array {
  const ranks: number[] = [];
  answer.rowRank.forEach((first, row) => {
    const next = answer.rowRank[row + 1] ?? Infinity;
    for (let i = 0; i < answer.ranksPerRow && ranks.length < numRanks; i += 1) {
      if (first + i < next) ranks.push(first + i);
    }
  });
  return Int32Array.from(ranks);
}

/** `next`, or `before` itself where they hold the same: identity says "unchanged". */
export function keepIfEqual(before: Int32Array, next: Int32Array): Int32Array {
  if (before.length !== next.length) return next;
  return before.every((rank, i) => rank === next[i]) ? before : next;
}

/** The rank of the row that holds the highest cell; null where nothing is recorded. */
export function highestRank(answer: HeatmapResponse): number | null {
  let best = 0;
  let found: number | null = null;
  answer.values.forEach((cell, i) => {
    if (cell <= best) return;
    best = cell;
    found = answer.rowRank[Math.floor(i / answer.numColumns)] ?? null;
  });
  return found;
}
