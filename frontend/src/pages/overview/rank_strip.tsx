/** The rank strip: every rank's peak against its capacity; choosing a bar narrows to it. */

import type { ComponentType } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { RankStrip } from "../../api/types.gen";
import {
  formatBytes,
  formatBytesExact,
  formatInteger,
  type ByteUnit,
} from "../../base/bytes";
import { parseRankSet } from "../../base/rank_set";
import type { Theme } from "../../base/tokens";
import { columnLabel } from "../../model/words/column_label";
import { LIMIT_WORDS } from "../../model/words/limit_label";
import type { Origin } from "../../model/words/origin";
import { formatQuantity } from "../../model/words/quantity";
import { ChartButton } from "../../widgets/line_chart/chart_button";
import { STRIP_ORDERS, type StripOrder } from "../../widgets/rank_bars/layout";
import { RankBars } from "../../widgets/rank_bars/rank_bars";
import type { RankTableProps } from "../../widgets/rank_table/rank_table";
import { Failure, Skeleton } from "../../widgets/state/state";
import type { RankChoice } from "../shared/rank_choice";

const HEIGHT_PX = 160;

export interface RankStripProps {
  readonly strip: RankStrip;
  readonly choice: RankChoice;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
  readonly order: StripOrder;
  readonly setOrder: (order: StripOrder) => void;
  readonly chooseRank: (rank: number | null) => void;
  readonly setPinned: (ranks: readonly number[]) => void;
  /** Said by exported files. */
  readonly origin: Origin;
}

const ORDER_WORDS: Readonly<Record<StripOrder, string>> = {
  rank: "rank",
  peak: "peak",
  growth: "growth",
};

export function RankStripChart(props: RankStripProps) {
  const { strip, order } = props;
  const [asTable, setAsTable] = useState(false);
  return (
    <section class="panel" aria-labelledby="strip-title">
      <header class="panel-head">
        <h2 id="strip-title">{stripTitle(strip)}</h2>
        <Legend {...props} />
        <div class="segmented" role="group" aria-label="Order of the ranks">
          <span class="quiet">Sort by</span>
          {STRIP_ORDERS.map((one) => (
            <button
              key={one}
              type="button"
              class="button"
              aria-pressed={one === order}
              onClick={() => props.setOrder(one)}
            >
              {ORDER_WORDS[one]}
            </button>
          ))}
        </div>
        <ChartButton
          icon="table"
          label="View as table"
          pressed={asTable}
          onClick={() => setAsTable(!asTable)}
        />
      </header>
      {asTable ? <Table {...props} /> : <Bars {...props} />}
    </section>
  );
}

const TABLE_PX = 360;

/** The table brings a library with it, so it is loaded when it is wanted. */
function Table(props: RankStripProps) {
  const [RankTable, setRankTable] = useState<ComponentType<RankTableProps> | null>(
    null,
  );
  const [failed, setFailed] = useState<string | null>(null);
  useEffect(() => {
    import("../../widgets/rank_table/rank_table").then(
      (module) => setRankTable(() => module.RankTable),
      (error: unknown) => setFailed(String(error)),
    );
  }, []);
  const filter = useFilter(props.choice);
  if (failed !== null) {
    const remedy = "Is TensorBoard still running? Start it again and reload.";
    return (
      <Failure
        failure={{ what: "The table could not be loaded.", where: failed, remedy }}
      />
    );
  }
  if (RankTable === null) return <Skeleton heightPx={TABLE_PX} />;
  const { pinned } = props.choice;
  return (
    <RankTable
      strip={props.strip}
      ranks={filter}
      pinned={pinned}
      onPin={(rank) => {
        const others = pinned.filter((one) => one !== rank);
        props.setPinned(others.length < pinned.length ? others : [...pinned, rank]);
      }}
      onPick={props.chooseRank}
      byteUnit={props.byteUnit}
      heightPx={TABLE_PX}
      origin={props.origin}
    />
  );
}

/** The ranks to draw; null means all. */
function useFilter(choice: RankChoice): ReadonlySet<number> | null {
  return useMemo(() => {
    const parsed = parseRankSet(choice.filter);
    return parsed.ok && parsed.ranks.length > 0 ? new Set(parsed.ranks) : null;
  }, [choice.filter]);
}

function stripTitle(strip: RankStrip): string {
  const what = columnLabel(strip.peakSeries);
  const peak = /peak/i.test(what) ? what : `${what} peak`;
  return strip.rank.length === 1 ? peak : `${peak} by rank`;
}

function Legend({ strip, byteUnit }: RankStripProps) {
  const capacity = strip.capacityBytes.reduce((a, b) => (b > a ? b : a), 0);
  const peak = strip.peakBytes.reduce((a, b) => (b > a ? b : a), 0);
  const hidden = capacity > 0 && peak < capacity * 0.15 ? ", above the chart" : "";
  return (
    <p class="legend quiet">
      {capacity > 0 && (
        <span>
          <i class="dash-long" /> {LIMIT_WORDS[strip.capacityKind]}{" "}
          {formatBytes(capacity, byteUnit)}
          {hidden}
        </span>
      )}
      {strip.medianPeakBytes !== null && strip.rank.length > 2 && (
        <span>
          <i class="dash-short" /> median {formatBytes(strip.medianPeakBytes, byteUnit)}
        </span>
      )}
    </p>
  );
}

function Bars(props: RankStripProps) {
  const { strip, choice, byteUnit, chooseRank } = props;
  return (
    <RankBars
      label={stripTitle(strip)}
      strip={strip}
      order={props.order}
      rank={choice.rank}
      filter={useFilter(choice)}
      facts={(i) => barFacts(strip, i, byteUnit)}
      onPick={(rank) => chooseRank(rank === choice.rank ? null : rank)}
      theme={props.theme}
      byteUnit={byteUnit}
      heightPx={HEIGHT_PX}
    />
  );
}

/** What the tooltip says of a rank; absent facts are left out. */
export function barFacts(
  strip: RankStrip,
  i: number,
  byteUnit: ByteUnit,
): readonly (readonly [string, string])[] {
  const facts: (readonly [string, string])[] = [];
  const value = (column: Float64Array): number | null => {
    const one = column[i];
    return one === undefined || Number.isNaN(one) ? null : one;
  };
  const peak = value(strip.peakBytes);
  const capacity = value(strip.capacityBytes);
  const step = value(strip.peakStep);
  const growth = value(strip.growthBytesPerStep);
  const lastStep = value(strip.lastStep);
  if (peak === null) facts.push(["Peak", "not recorded"]);
  else {
    const share =
      capacity === null ? "" : ` · ${Math.round((100 * peak) / capacity)} %`;
    facts.push(["Peak", `${formatBytes(peak, byteUnit)}${share}`]);
    facts.push(["", formatBytesExact(peak)]);
  }
  if (step !== null) facts.push(["At step", formatInteger(step)]);
  if (growth !== null) {
    const sign = growth > 0 ? "+" : "";
    facts.push(["Growth", sign + formatQuantity(growth, "bytes_per_step", byteUnit)]);
  }
  const ooms = value(strip.numOoms) ?? 0;
  const retries = value(strip.numAllocRetries) ?? 0;
  if (ooms > 0) facts.push(["Out of memory", `${formatInteger(ooms)}×`]);
  if (retries > 0) facts.push(["Allocation retries", formatInteger(retries)]);
  if (lastStep !== null) facts.push(["Last step", formatInteger(lastStep)]);
  if (strip.lost[i] === 1) facts.push(["Ended", "without closing the recording"]);
  return facts;
}
