/** The rank strip: every rank's peak against its capacity; choosing a bar narrows to it. */

import { useMemo } from "preact/hooks";
import type { RankStrip } from "../../api/types.gen";
import type { ByteUnit } from "../../base/bytes";
import { parseRankSet } from "../../base/rank_set";
import { columnLabel } from "../../model/words/column_label";
import { originOf } from "../../model/words/origin";
import { STRIP_ORDERS } from "../../widgets/rank_bars/bars";
import { RankBars } from "../../widgets/rank_bars/rank_bars";
import { rankColumns } from "../../widgets/rank_table/columns";
import { RankTable } from "../../widgets/rank_table/rank_table";
import { Segmented } from "../shared/controls/choices";
import { oneOf, usePageState } from "../shared/page_state";
import type { ViewProps } from "../shared/view_props";

const BARS_PX = 160;
const TABLE_PX = 360;
const STATE = { order: oneOf("sort", STRIP_ORDERS, "rank") };

export function RankStripChart(props: {
  readonly view: ViewProps;
  readonly strip: RankStrip;
}) {
  const { view, strip } = props;
  const { ranks, byteUnit, chooseRank } = view;
  const { pinned } = ranks;
  const [{ order }, change] = usePageState(view, STATE);
  const filter = useMemo(() => {
    const parsed = parseRankSet(ranks.filter);
    return parsed.ok && parsed.ranks.length > 0 ? new Set(parsed.ranks) : null;
  }, [ranks.filter]);
  const facts = useMemo(() => barFacts(strip, byteUnit), [strip, byteUnit]);
  return (
    <section class="panel">
      <RankBars
        {...{ strip, order, filter, facts, byteUnit }}
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
        theme={view.theme}
        heightPx={BARS_PX}
        origin={originOf(view.run)}
        tableView={
          <RankTable
            strip={strip}
            ranks={filter}
            pinned={pinned}
            onPin={(rank) => {
              const others = pinned.filter((one) => one !== rank);
              view.setPinned(
                others.length < pinned.length ? others : [...pinned, rank],
              );
            }}
            onPick={chooseRank}
            byteUnit={byteUnit}
            heightPx={TABLE_PX}
            origin={originOf(view.run)}
          />
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
/** The tip's heading says them. */
const IN_HEADING: readonly string[] = ["pin", "rank", "host"];
/** None of these is the rule. */
const COUNTS: readonly string[] = ["allocator retries", "out of memory"];

/** What the tooltip says of a rank, as the table does; absent facts are left out. */
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
