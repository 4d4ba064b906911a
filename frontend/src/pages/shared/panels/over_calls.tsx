import { useMemo, useState } from "preact/hooks";
import type { Unit, XKind } from "../../../api/types.gen";
import { counted, formatInteger } from "../../../base/bytes";
import { LineChart } from "../../../widgets/line_chart/line_chart";
import type { ChartLine } from "../../../widgets/line_chart/types";
import type { XRange } from "../../../widgets/plot/range";
import { RankBars, type RankFact } from "../../../widgets/rank_bars/rank_bars";
import { lookOf, type ViewProps } from "../view_props";

type ValueSeries = readonly [name: string, values: Float64Array];

interface OverCalls {
  readonly x: XKind;
  readonly lines: readonly ChartLine[];
  readonly extent: XRange;
}

/**
 * Over steps if all calls have one and they ascend, else over time: calls by hand have
 * no step, and a restarted training counts its steps again. Calls without a time and
 * values never measured are left out.
 */
export function callLines(
  step: Float64Array,
  timeMs: Float64Array,
  values: readonly ValueSeries[],
): OverCalls {
  const isOrdered = step.every(
    (number, i) => number > (i === 0 ? -1 : (step[i - 1] ?? NaN)),
  );
  const position = isOrdered ? step : timeMs;
  const kept = [...position.keys()].filter((i) => Number.isFinite(position[i]));
  const pick = (of: Float64Array) => Float64Array.from(kept, (i) => of[i] ?? NaN);
  const x = pick(position);
  return {
    x: isOrdered ? "step" : "wall",
    lines: values
      .filter(([, all]) => all.some(Number.isFinite))
      .map(([label, all], colour) => {
        const y = pick(all);
        return { id: label, label, x, y, yLow: y, colour };
      }),
    extent: { low: x[0] ?? 0, high: x[x.length - 1] ?? 1 },
  };
}

/** Empty with fewer than two placed calls. */
export function OverCallsChart(props: {
  readonly view: ViewProps;
  readonly over: OverCalls;
  readonly label: string;
  readonly title: string;
  readonly unit: Unit;
  readonly fromZero: boolean;
  readonly heightPx: number;
}) {
  const { view, over, ...rest } = props;
  const [range, setRange] = useState<XRange | null>(null);
  if ((over.lines[0]?.x.length ?? 0) < 2) return null;
  return (
    <LineChart {...over} {...rest} {...lookOf(view)} range={range} onRange={setRange} />
  );
}

/** Empty with one rank. */
export function OverRanks(props: {
  readonly view: ViewProps;
  readonly label: string;
  readonly title: string;
  readonly rank: Int32Array;
  readonly bytes: Float64Array;
  readonly ofRanks: number;
  readonly facts: (i: number) => readonly RankFact[];
  readonly heightPx: number;
}) {
  const { view, rank, bytes, ofRanks } = props;
  const strip = useMemo(() => ({ rank, peakBytes: bytes }), [rank, bytes]);
  const num = rank.length;
  if (num < 2) return null;
  return (
    <RankBars
      label={props.label}
      title={
        <>
          {props.title} {counted(num, "rank")}
          {num < ofRanks && (
            <span class="quiet"> of {formatInteger(ofRanks)} read so far</span>
          )}
        </>
      }
      strip={strip}
      order="rank"
      rank={view.ranks.rank}
      filter={null}
      facts={props.facts}
      onPick={view.chooseRank}
      {...lookOf(view)}
      heightPx={props.heightPx}
    />
  );
}
