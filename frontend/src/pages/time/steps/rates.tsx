import { useMemo } from "preact/hooks";
import type { StepRate, StepsResponse } from "../../../api/types.gen";
import { counted } from "../../../base/bytes";
import { LineChart } from "../../../widgets/line_chart/line_chart";
import type { ChartLine } from "../../../widgets/line_chart/types";
import type { XRange } from "../../../widgets/plot/range";
import { Segmented } from "../../shared/controls/choices";
import { lookOf, type ViewProps } from "../../shared/view_props";
import { CHART_PX, type StepsParams } from "./params";

export function RateChart(props: {
  readonly view: ViewProps;
  readonly answer: StepsResponse;
  readonly params: StepsParams;
  readonly extent: XRange;
  readonly range: XRange | null;
  readonly setRange: (range: XRange | null) => void;
}) {
  const { view, answer, params } = props;
  const { rates } = answer;
  const rate = rates.find(({ key }) => key === params.rate) ?? rates[0];
  const lines = useMemo(
    () => (rate === undefined ? [] : rateLines(answer, rate, params.summed)),
    [answer, rate, params.summed],
  );
  if (rate === undefined) return null;
  return (
    <section aria-label="Throughput">
      <div class="row">
        <Segmented
          label="Throughput"
          options={rates.map(({ key }) => key)}
          chosen={rate.key}
          labels={(wanted) => {
            const wantedRate = rates.find(({ key }) => key === wanted);
            return [wantedRate?.title ?? "", wantedRate?.help ?? ""];
          }}
          onChoose={(key) => view.setParams({ rate: key }, "push")}
        />
        {rate.summed.length > 0 && (
          <Segmented
            label="Throughput of"
            chosen={params.summed ? "all" : "one"}
            labels={{
              one: [`Rank ${answer.rank ?? "–"}`, "Of one rank"],
              all: ["All ranks", "Over all ranks; of MFU, the mean"],
            }}
            onChoose={(option) =>
              view.setParams({ summed: option === "all" ? "1" : null }, "push")
            }
          />
        )}
        <span class="quiet small">{rate.help}</span>
      </div>
      <LineChart
        label={rate.title}
        unit={rate.key === "mfu" ? "percent" : "per_second"}
        x={answer.x}
        lines={lines}
        extent={props.extent}
        range={props.range}
        onRange={props.setRange}
        cursor={view.cursor}
        {...lookOf(view)}
        heightPx={CHART_PX}
        legend={false}
      />
    </section>
  );
}

export function rateLines(
  { edges, numSummed, rank }: StepsResponse,
  { key, values, summed }: StepRate,
  wantsAll: boolean,
): readonly ChartLine[] {
  const all = wantsAll && summed.length > 0;
  const y = all ? summed : values;
  const x = y.map((_, c) => ((edges[c] ?? NaN) + (edges[c + 1] ?? NaN)) / 2);
  const whose = `${key === "mfu" ? "mean of" : "all"} ${counted(numSummed, "rank")}`;
  const label = all ? whose : `rank ${rank ?? "–"}`;
  return [{ id: label, label, x, y, yLow: y, colour: 0 }];
}
