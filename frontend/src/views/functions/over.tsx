/** One statistic of the function over its calls, and of the chosen call over ranks. */

import { useSignal } from "@preact/signals";
import { useMemo, useState } from "preact/hooks";
import type { FunctionOverRanks, FunctionsResponse } from "../../api/types.gen";
import { formatInteger } from "../../base/bytes";
import { originOf } from "../../model/origin";
import { formatExact, formatQuantity } from "../../model/quantity";
import { formatSigned } from "../../model/signed";
import { LineChart } from "../../widgets/line_chart/line_chart";
import type { XRange } from "../../widgets/line_chart/types";
import { RankBars, stripOfValues } from "../../widgets/rank_bars/rank_bars";
import type { ViewProps } from "../view_props";
import { callLines } from "./series";
import { statGroups, statLabel } from "./stats";

const CHART_PX = 150;

export interface OverProps {
  readonly view: ViewProps;
  readonly data: FunctionsResponse;
}

export function Over({ view, data }: OverProps) {
  const stat =
    data.stats.find(({ name }) => name === data.overRanks?.stat) ?? data.stats[0];
  if (stat === undefined) return null;
  return (
    <section class="functions-over" aria-label="One statistic">
      <label class="functions-stat">
        <span class="quiet">Drawn below</span>{" "}
        <select
          value={stat.name}
          onChange={(event) => view.setParams({ stat: event.currentTarget.value })}
        >
          {statGroups(data.stats, "").map(({ title, stats }) => (
            <optgroup key={title} label={title}>
              {stats.map(({ name }) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </optgroup>
          ))}
        </select>
      </label>
      <div class="functions-charts">
        <OverCalls view={view} data={data} stat={stat} />
        {data.overRanks !== null && (
          <OverRanks view={view} data={data} over={data.overRanks} />
        )}
      </div>
    </section>
  );
}

function OverCalls({
  view,
  data,
  stat,
}: OverProps & { readonly stat: FunctionsResponse["stats"][number] }) {
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
}: OverProps & { readonly over: FunctionOverRanks }) {
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
