/** The rank strip: every rank's peak against its capacity; choosing a bar narrows to it. */

import type { ComponentType } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { RankStrip } from "../../api/types.gen";
import {
  formatBytes,
  formatBytesExact,
  formatInteger,
  type ByteUnit,
} from "../../base/bytes";
import { parseRankSet } from "../../base/rank_set";
import type { Theme } from "../../base/tokens";
import { columnLabel } from "../../model/column_label";
import { LIMIT_WORDS } from "../../model/limit_label";
import type { Origin } from "../../model/origin";
import { formatQuantity } from "../../model/quantity";
import { ChartButton } from "../../widgets/line_chart/chart_button";
import type { RankTableProps } from "../../widgets/rank_table/rank_table";
import { Failure, Skeleton } from "../../widgets/state/state";
import { useWidth } from "../../widgets/line_chart/use_size";
import type { RankChoice } from "../rank_choice";
import {
  barAt,
  layoutStrip,
  STRIP_ORDERS,
  type StripBar,
  type StripOrder,
} from "./strip_layout";
import { paintStrip, STRIP_LEFT_PX } from "./strip_paint";

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
              onClick={() => {
                props.setOrder(one);
              }}
            >
              {ORDER_WORDS[one]}
            </button>
          ))}
        </div>
        <ChartButton
          icon="table"
          label="View as table"
          pressed={asTable}
          onClick={() => {
            setAsTable(!asTable);
          }}
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
      (module) => {
        setRankTable(() => module.RankTable);
      },
      (error: unknown) => {
        setFailed(String(error));
      },
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
  const { strip, choice, theme, byteUnit, order, chooseRank } = props;
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const widthPx = useWidth(box);
  const [hovered, setHovered] = useState<number | null>(null);
  const layout = useMemo(
    () => layoutStrip(strip, order, Math.max(1, widthPx - STRIP_LEFT_PX)),
    [strip, order, widthPx],
  );
  const filter = useFilter(choice);
  useLayoutEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (context === null || context === undefined || widthPx === 0) return;
    const scale = window.devicePixelRatio;
    context.canvas.width = Math.round(widthPx * scale);
    context.canvas.height = Math.round(HEIGHT_PX * scale);
    context.setTransform(scale, 0, 0, scale, 0, 0);
    const frame = { widthPx, heightPx: HEIGHT_PX, hovered, rank: choice.rank, filter };
    paintStrip(context, { strip, layout, theme, byteUnit, ...frame });
  });
  const bar = hovered === null ? undefined : layout.bars[hovered];
  const choose = (one: StripBar | undefined): void => {
    const rank = one === undefined ? undefined : strip.rank[one.top];
    if (rank !== undefined) chooseRank(rank === choice.rank ? null : rank);
  };
  const move = (to: number): void => {
    setHovered(Math.max(0, Math.min(layout.bars.length - 1, to)));
  };
  return (
    <div class="strip" ref={box}>
      <canvas
        ref={canvas}
        tabIndex={0}
        role="application"
        aria-label={`${stripTitle(strip)}, ${formatInteger(strip.rank.length)} ranks`}
        aria-describedby="strip-help"
        style={{ height: `${HEIGHT_PX}px` }}
        onPointerMove={(event) => {
          const left = event.currentTarget.getBoundingClientRect().left;
          setHovered(barAt(layout, event.clientX - left - STRIP_LEFT_PX));
        }}
        onPointerLeave={() => {
          setHovered(null);
        }}
        onBlur={() => {
          setHovered(null);
        }}
        onClick={() => {
          choose(bar);
        }}
        onKeyDown={(event) => {
          const at = hovered ?? -1;
          if (event.key === "ArrowRight") move(at + (event.shiftKey ? 10 : 1));
          else if (event.key === "ArrowLeft") move(at - (event.shiftKey ? 10 : 1));
          else if (event.key === "Home") move(0);
          else if (event.key === "End") move(layout.bars.length - 1);
          else if (event.key === "Enter") choose(bar);
          else return;
          event.preventDefault();
        }}
      />
      <p id="strip-help" class="off-screen">
        Arrow keys move from rank to rank, Enter opens a rank’s page.
      </p>
      <div aria-live="polite">
        {bar !== undefined && hovered !== null && (
          <BarTip
            bar={bar}
            xPx={STRIP_LEFT_PX + (hovered + 0.5) * layout.pitchPx}
            widthPx={widthPx}
            strip={strip}
            byteUnit={byteUnit}
          />
        )}
      </div>
    </div>
  );
}

const TIP_WIDTH_PX = 248;

function BarTip(props: {
  readonly bar: StripBar;
  readonly xPx: number;
  readonly widthPx: number;
  readonly strip: RankStrip;
  readonly byteUnit: ByteUnit;
}) {
  const { bar, strip, byteUnit } = props;
  const i = bar.top;
  const leftPx = Math.min(
    Math.max(0, props.xPx - TIP_WIDTH_PX / 2),
    Math.max(0, props.widthPx - TIP_WIDTH_PX),
  );
  return (
    <div class="bar-tip" style={{ left: `${leftPx}px`, width: `${TIP_WIDTH_PX}px` }}>
      <p>
        <strong>Rank {strip.rank[i]}</strong>{" "}
        <span class="quiet">{strip.hosts[strip.host[i] ?? -1] ?? ""}</span>
      </p>
      {bar.members.length > 1 && (
        <p class="quiet">
          The highest of {formatInteger(bar.members.length)} ranks here
        </p>
      )}
      <dl>
        {barFacts(strip, i, byteUnit).map(([word, value]) => (
          <div key={word}>
            <dt>{word}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </div>
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
