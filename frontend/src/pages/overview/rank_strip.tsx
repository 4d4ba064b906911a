import { useMemo } from "preact/hooks";
import type { RankStrip } from "../../api/types.gen";
import { STRIP_ORDERS } from "../../widgets/rank_bars/bars";
import { RankBars } from "../../widgets/rank_bars/rank_bars";
import { Segmented } from "../shared/controls/choices";
import { oneOf, usePageState } from "../shared/page_state";
import { filteredRanks, rankFacts, RanksTable } from "../shared/ranks_table";
import { lookOf, type ViewProps } from "../shared/view_props";

const BARS_PX = 160;
const STATE = { order: oneOf("sort", STRIP_ORDERS, "rank") };

export function RankStripChart(props: {
  readonly view: ViewProps;
  readonly strip: RankStrip;
}) {
  const { view, strip } = props;
  const { ranks, theme, byteUnit, chooseRank } = view;
  const [{ order }, change] = usePageState(view, STATE);
  const filter = useMemo(() => filteredRanks(ranks.filter), [ranks.filter]);
  const facts = useMemo(
    () => rankFacts(strip.table, { theme, byteUnit }),
    [strip, theme, byteUnit],
  );
  return (
    <section class="panel">
      <RankBars
        {...lookOf(view)}
        strip={strip}
        order={order}
        filter={filter}
        facts={facts}
        label={stripTitle(strip)}
        title={<h2>{stripTitle(strip)}</h2>}
        bar={
          <Segmented
            label="Order of the ranks"
            title="Sort by"
            options={STRIP_ORDERS}
            chosen={order}
            labels={(option) => [option, `By ${option}`]}
            onChoose={(option) => change({ order: option })}
          />
        }
        rank={ranks.rank}
        onPick={(rank) => chooseRank(rank === ranks.rank ? null : rank)}
        heightPx={BARS_PX}
        tableView={<RanksTable view={view} strip={strip} />}
      />
    </section>
  );
}

function stripTitle(strip: RankStrip): string {
  const label = strip.peakLabel;
  const peak = /peak/i.test(label) ? label : `${label} peak`;
  return strip.rank.length === 1 ? peak : `${peak} by rank`;
}
