import type { RankStrip } from "../../api/types.gen";
import { parseRankSet } from "../../model/words/rank_set";
import { RankTable } from "../../widgets/rank_table/rank_table";
import { lookOf, type ViewProps } from "./view_props";

/** null, which shows all, for an invalid filter. */
export function filteredRanks(filter: string): ReadonlySet<number> | null {
  const parsed = parseRankSet(filter);
  return parsed.ok && parsed.ranks.length > 0 ? new Set(parsed.ranks) : null;
}

export function RanksTable(props: {
  readonly view: ViewProps;
  readonly strip: RankStrip;
  readonly ranks: ReadonlySet<number> | null;
  readonly heightPx: number;
}) {
  const { view, ...table } = props;
  const { pinned } = view.ranks;
  return (
    <RankTable
      {...table}
      {...lookOf(view)}
      pinned={pinned}
      onPin={(rank) => {
        const others = pinned.filter((one) => one !== rank);
        const wasPinned = others.length < pinned.length;
        view.setPinned(wasPinned ? others : [...others, rank].sort((a, b) => a - b));
      }}
      onPick={view.chooseRank}
    />
  );
}
