import { useMemo } from "preact/hooks";
import type { RankStrip } from "../../api/types.gen";
import type { ByteUnit } from "../../base/bytes";
import { columnLabel } from "../../model/words/column_label";
import { STRIP_ORDERS } from "../../widgets/rank_bars/bars";
import { RankBars } from "../../widgets/rank_bars/rank_bars";
import { rankColumns } from "../../widgets/rank_table/columns";
import { Segmented } from "../shared/controls/choices";
import { oneOf, usePageState } from "../shared/page_state";
import { filteredRanks, RanksTable } from "../shared/ranks_table";
import { lookOf, type ViewProps } from "../shared/view_props";

const BARS_PX = 160;
const TABLE_PX = 360;
const STATE = { order: oneOf("sort", STRIP_ORDERS, "rank") };

export function RankStripChart(props: {
  readonly view: ViewProps;
  readonly strip: RankStrip;
}) {
  const { view, strip } = props;
  const { ranks, byteUnit, chooseRank } = view;
  const [{ order }, change] = usePageState(view, STATE);
  const filter = useMemo(() => filteredRanks(ranks.filter), [ranks.filter]);
  const facts = useMemo(() => barFacts(strip, byteUnit), [strip, byteUnit]);
  return (
    <section class="panel">
      <RankBars
        {...lookOf(view)}
        {...{ strip, order, filter, facts }}
        label={stripTitle(strip)}
        title={<h2>{stripTitle(strip)}</h2>}
        bar={
          <Segmented
            label="Order of the ranks"
            title="Sort by"
            options={STRIP_ORDERS}
            chosen={order}
            words={(one) => [one, `By ${one}`]}
            onChoose={(one) => change({ order: one })}
          />
        }
        rank={ranks.rank}
        onPick={(rank) => chooseRank(rank === ranks.rank ? null : rank)}
        heightPx={BARS_PX}
        tableView={
          <RanksTable view={view} strip={strip} ranks={filter} heightPx={TABLE_PX} />
        }
      />
    </section>
  );
}

function stripTitle(strip: RankStrip): string {
  const what = columnLabel(strip.peakSeries);
  const peak = /peak/i.test(what) ? what : `${what} peak`;
  return strip.rank.length === 1 ? peak : `${peak} by rank`;
}

const NO_PINS: ReadonlySet<number> = new Set();
/** In the tooltip's heading already. */
const IN_HEADING: readonly string[] = ["pin", "rank", "host"];
/** Zero is normal and not shown. */
const COUNTS: readonly string[] = ["allocator retries", "out of memory"];

export function barFacts(
  strip: RankStrip,
  byteUnit: ByteUnit,
): (row: number) => readonly (readonly [string, string])[] {
  const columns = rankColumns(strip, NO_PINS, () => undefined, byteUnit).filter(
    ({ key }) => !IN_HEADING.includes(key),
  );
  return (row) =>
    columns.flatMap(({ key, title, cell }): readonly (readonly [string, string])[] => {
      const { text, title: exact = "" } = cell(row);
      if (key === "peak") {
        if (text === "–") return [[title, "not recorded"]];
        return [
          [title, text],
          ["", exact],
        ];
      }
      const isSaid = text !== "" && text !== "–";
      return isSaid && !(COUNTS.includes(key) && text === "0") ? [[title, text]] : [];
    });
}
