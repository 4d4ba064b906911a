import type { CellFacts } from "../../../widgets/heatmap/layout";
import type { PlotPage } from "../../../widgets/plot/moves";
import { RankHeatmap, type SharedRange } from "../heat_answers";
import { filteredRanks } from "../ranks_table";
import type { ViewProps } from "../view_props";
import type { TimelineParams } from "./params";

const ROW_PX = 20;
const MOST_PX = 420;

export function RankMap(props: {
  readonly view: ViewProps;
  readonly params: TimelineParams;
  /** All ranks of the run; null until known. */
  readonly allRanks: Int32Array | null;
  readonly shared: SharedRange;
  readonly px: number;
  /** The page whose exports include the heatmap's. */
  readonly page?: PlotPage;
  /** Difference from the median of all ranks, in place of values. */
  readonly excess: boolean;
  readonly mostPx?: number;
  readonly onPick: (rank: number, cell: CellFacts) => void;
}) {
  const { view, params, allRanks, excess, mostPx = MOST_PX } = props;
  const { series, phase } = params;
  const scope = excess ? "beyond the median rank" : "by rank and step";
  return (
    <RankHeatmap
      view={view}
      route="heatmap"
      subject={{ series, phase, of: excess ? "excess" : null }}
      px={props.px}
      shared={params.x === "step" ? props.shared : null}
      rowRanks={allRanks && drawnRanks(allRanks, view.ranks.filter)}
      mostPx={mostPx}
      label={(info) => `${info.label} ${scope}`}
      onPick={props.onPick}
      {...(excess ? { diverging: true, pooled: "farthest" } : {})}
      rowPx={ROW_PX}
      waitingPx={mostPx}
      empty={null}
      {...(props.page && { page: props.page })}
    />
  );
}

/** An invalid filter narrows nothing. */
export function drawnRanks(ranks: Int32Array, filter: string): Int32Array {
  const wanted = filteredRanks(filter);
  return wanted === null ? ranks : ranks.filter((rank) => wanted.has(rank));
}
