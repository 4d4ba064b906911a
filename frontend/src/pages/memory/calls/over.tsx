/** One statistic of the function over its calls, and of the chosen call over ranks. */

import { useSignal } from "@preact/signals";
import { useMemo, useState } from "preact/hooks";
import type {
  FunctionOverRanks,
  FunctionsResponse,
  FunctionCalls,
  FunctionStat,
  XKind,
} from "../../../api/types.gen";
import { formatInteger, type ByteUnit } from "../../../base/bytes";
import { originOf } from "../../../model/words/origin";
import { formatExact, formatQuantity } from "../../../model/words/quantity";
import { formatSigned } from "../../../model/words/signed";
import { LineChart } from "../../../widgets/line_chart/line_chart";
import type { XRange, ChartLine } from "../../../widgets/line_chart/types";
import { RankBars, stripOfValues } from "../../../widgets/rank_bars/rank_bars";
import type { ViewProps } from "../../shared/view_props";
import { statLabel } from "./stats";

const CHART_PX = 180;

export interface OverProps {
  readonly view: ViewProps;
  readonly data: FunctionsResponse;
  readonly stat: FunctionStat;
}

export function Over(props: OverProps) {
  const { view, data, stat } = props;
  const over = data.overRanks;
  return (
    <section class="functions-over" aria-label="Memory at start and end of each call">
      <p class="functions-growth">
        {growthWords(stat, data.function ?? "", view.byteUnit)}
      </p>
      <div class="functions-charts">
        <OverCalls {...props} />
        {over !== null && <OverRanks view={view} data={data} over={over} />}
      </div>
    </section>
  );
}

/** `RSS grows by 6.42 MiB in a call of step (median of 3) and by 20.5 MiB over all`. */
export function growthWords(
  stat: FunctionStat,
  name: string,
  byteUnit: ByteUnit,
): string {
  const label = statLabel(stat.name);
  const known = [...stat.difference].filter(Number.isFinite).sort((a, b) => a - b);
  if (known.length === 0) return `${label} was not measured on both sides of a call.`;
  const middle = known.length >> 1;
  const upper = known[middle] ?? NaN;
  const median = known.length % 2 ? upper : (upper + (known[middle - 1] ?? NaN)) / 2;
  const change = (value: number): string =>
    value === 0
      ? "does not change"
      : `${value > 0 ? "grows" : "shrinks"} by ${formatQuantity(Math.abs(value), stat.unit, byteUnit)}`;
  if (known.length === 1) return `${label} ${change(median)} in a call of ${name}.`;
  const first = [...stat.start].find(Number.isFinite) ?? NaN;
  const last = [...stat.end].reverse().find(Number.isFinite) ?? NaN;
  return `${label} ${change(median)} in a call of ${name} (median of ${formatInteger(known.length)}); from the first call to the last it ${change(last - first)}.`;
}

function OverCalls({ view, data, stat }: OverProps) {
  const cursor = useSignal<number | null>(null);
  const [range, setRange] = useState<XRange | null>(null);
  const { x, lines, extent } = useMemo(
    () => callLines(data.calls, stat),
    [data.calls, stat],
  );
  const num = data.calls.iteration.length;
  // Imported calls have neither steps nor times: the table alone can show them.
  if ((lines[0]?.x.length ?? 0) < 2) return null;
  return (
    <LineChart
      label={`${statLabel(stat.name)} around ${data.function ?? ""}`}
      title={`${statLabel(stat.name)} at start and end of ${formatInteger(num)} calls`}
      unit={stat.unit}
      byteUnit={view.byteUnit}
      x={x}
      lines={lines}
      extent={extent}
      fromZero={false}
      range={range}
      onRange={setRange}
      cursor={cursor}
      theme={view.theme}
      heightPx={CHART_PX}
      origin={originOf(data.run)}
    />
  );
}

function OverRanks({
  view,
  data,
  over,
}: Pick<OverProps, "view" | "data"> & { readonly over: FunctionOverRanks }) {
  const strip = useMemo(() => stripOfValues(over.rank, over.end), [over]);
  const num = over.rank.length;
  // Bars stand for bytes; counts and hooks' own numbers are told by the table.
  if (num < 2 || over.unit !== "bytes") return null;
  const word = (value: number | undefined): string =>
    formatQuantity(value ?? NaN, over.unit, view.byteUnit);
  return (
    <figure class="chart">
      <div class="chart-bar">
        <figcaption>
          {statLabel(over.stat)} at the end of iteration {data.iteration} on{" "}
          {formatInteger(num)} ranks
          {num < over.ofRanks && (
            <span class="quiet"> of {formatInteger(over.ofRanks)} read so far</span>
          )}
        </figcaption>
      </div>
      <RankBars
        label={`${statLabel(over.stat)} by rank`}
        strip={strip}
        order="rank"
        rank={view.ranks.rank}
        filter={null}
        facts={(i) => [
          ["Start", word(over.start[i])],
          ["End", word(over.end[i])],
          ["", formatExact(over.end[i] ?? NaN, over.unit)],
          [
            "Difference",
            formatSigned(over.difference[i] ?? NaN, over.unit, view.byteUnit),
          ],
        ]}
        onPick={view.chooseRank}
        theme={view.theme}
        byteUnit={view.byteUnit}
        heightPx={CHART_PX}
      />
    </figure>
  );
}

/** Over steps where they ascend, else over the clock. */
export function callLines(
  calls: FunctionCalls,
  stat: FunctionStat,
): {
  readonly x: XKind;
  readonly lines: readonly ChartLine[];
  readonly extent: XRange;
} {
  const byStep = calls.step.every(
    (step, i) =>
      Number.isFinite(step) && (i === 0 || step > (calls.step[i - 1] ?? NaN)),
  );
  const times = Float64Array.from(calls.startMs, (start, i) =>
    Number.isFinite(start) ? start : (calls.endMs[i] ?? NaN),
  );
  const at = byStep ? calls.step : times;
  // Without any time a call has no place on the axis.
  const kept = Array.from(at.keys()).filter((i) => Number.isFinite(at[i] ?? NaN));
  const pick = (values: Float64Array): Float64Array =>
    Float64Array.from(kept, (i) => values[i] ?? NaN);
  const x = pick(at);
  const line = (id: "start" | "end", colour: number): ChartLine => {
    const y = pick(stat[id]);
    return { id, label: id, x, y, yLow: y, colour };
  };
  return {
    x: byStep ? "step" : "wall",
    lines: [line("start", 0), line("end", 1)],
    extent: { low: x[0] ?? 0, high: x[x.length - 1] ?? 1 },
  };
}
