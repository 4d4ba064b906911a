import type { Client, Query } from "../../../api/client";
import type { SeriesInfo, HeatmapResponse } from "../../../api/types.gen";
import { formatRankSet } from "../../../model/words/rank_set";
import type { CellFacts } from "../../../widgets/heatmap/layout";
import type { PlotPage } from "../../../widgets/plot/moves";
import type { XRange } from "../../../widgets/plot/range";
import { RankHeatmap, useHeatAnswers, useHeatRange } from "../heat_answers";
import type { ViewProps } from "../view_props";
import { filteredRanks } from "../ranks_table";
import { seriesLabel } from "./lines";
import type { TimelineParams } from "./params";

const ROW_PX = 20;
const MOST_PX = 420;

export function RankMap(props: {
  readonly view: ViewProps;
  readonly params: TimelineParams;
  /** Known once the chart has its answer; distinguishes series of one name. */
  readonly available: readonly SeriesInfo[] | null;
  /** All ranks of the run; null until known. */
  readonly known: Int32Array | null;
  /** Shared with the chart where its x is the step, else null. */
  readonly range: XRange | null;
  readonly setRange: (range: XRange | null) => void;
  readonly px: number;
  /** The page whose exports include the heatmap's. */
  readonly page?: PlotPage;
  /** Difference from the median of all ranks, in place of values. */
  readonly excess?: boolean;
  readonly mostPx?: number;
  readonly onPick: (rank: number, step: number) => void;
}) {
  const { view, params, available, known, px, excess = false } = props;
  const { mostPx = MOST_PX } = props;
  const { client, run, ranks: choice, pollMs } = view;
  const range = useHeatRange(view, params.x === "step", props.range, props.setRange);
  const subject = {
    run: run.id,
    ranks: choice.filter,
    series: params.series,
    phase: params.phase,
    of: excess ? "excess" : null,
  };
  const answers = useHeatAnswers(
    ...([client, "heatmap", subject, px, pollMs] as const),
    { known: known && drawnRanks(known, choice.filter), mostPx },
  );
  const pick = (picked: CellFacts): void => {
    pickedRank(client, subject, answers.ranks, picked).then(
      (rank) => props.onPick(rank, picked.firstStep),
      () => {
        // The page already reports that the server does not answer.
      },
    );
  };
  return (
    <RankHeatmap
      {...{ view, answers, mostPx, ...range }}
      label={(series) =>
        `${seriesLabel(series, available ?? [])}${excess ? " beyond the median rank" : " by rank and step"}`
      }
      onPick={pick}
      {...(excess ? { diverging: true, pooled: "farthest" } : {})}
      rowPx={ROW_PX}
      waitingPx={mostPx}
      empty={null}
      {...(props.page === undefined ? {} : { page: props.page })}
    />
  );
}

/** The rank with the peak of a cell: pooled rows need one more request. */
async function pickedRank(
  client: Client,
  subject: Query,
  ranks: Int32Array,
  picked: CellFacts,
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

/** An invalid filter narrows nothing. */
export function drawnRanks(known: Int32Array, filter: string): Int32Array {
  const wanted = filteredRanks(filter);
  return wanted === null ? known : known.filter((rank) => wanted.has(rank));
}

/** The rank of the row with the highest cell; null: nothing recorded. */
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
