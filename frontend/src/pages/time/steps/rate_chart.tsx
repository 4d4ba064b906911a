/** Steps, samples or tokens per second, FLOP/s or MFU, of one rank or of all. */

import { useMemo } from "preact/hooks";
import type { StepsResponse } from "../../../api/types.gen";
import { originOf } from "../../../model/words/origin";
import { LineChart } from "../../../widgets/line_chart/line_chart";
import type { XRange } from "../../../widgets/plot/range";
import { Segmented } from "../../shared/controls/choices";
import type { ViewProps } from "../../shared/view_props";
import { CHART_PX, type StepsParams } from "./params";
import { canSum, chosenRate, flopsWords, rateLines, RATE_WORDS, unitOf } from "./rates";

export function RateChart(props: {
  readonly view: ViewProps;
  readonly answer: StepsResponse;
  readonly params: StepsParams;
  readonly extent: XRange;
  readonly range: XRange | null;
  readonly setRange: (range: XRange | null) => void;
}) {
  const { view, answer, params } = props;
  const rate = chosenRate(answer.rates, params.rate);
  const lines = useMemo(
    () => (rate === null ? [] : rateLines(answer, rate, params.summed)),
    [answer, rate, params.summed],
  );
  if (rate === null) return null;
  const [title, hint] = RATE_WORDS[rate.key];
  return (
    <section class="steps-rate" aria-label="Throughput">
      <div class="steps-map-bar">
        <Segmented
          label="Throughput"
          options={answer.rates.map(({ key }) => key)}
          chosen={rate.key}
          words={(key) => RATE_WORDS[key]}
          onChoose={(key) => view.setParams({ rate: key }, "push")}
        />
        {canSum(rate) && (
          <Segmented
            label="Of whom"
            options={["one", "all"] as const}
            chosen={params.summed ? "all" : "one"}
            words={(one) =>
              one === "one"
                ? [`Rank ${answer.rank ?? "–"}`, "Of one rank"]
                : ["All ranks", "Over all ranks; of MFU, the mean"]
            }
            onChoose={(one) =>
              view.setParams({ summed: one === "all" ? "1" : null }, "push")
            }
          />
        )}
        <span class="quiet steps-help">
          {rate.key === "mfu" || rate.key === "flops" ? flopsWords(answer) : hint}
          {rate.key !== "mfu" &&
            rate.key !== "flops" &&
            answer.flops.missing !== "" &&
            ` ${flopsWords(answer)}`}
        </span>
      </div>
      <LineChart
        label={title}
        unit={unitOf(rate.key)}
        byteUnit={view.byteUnit}
        x={answer.x}
        lines={lines}
        extent={props.extent}
        range={props.range}
        onRange={props.setRange}
        cursor={view.cursor}
        theme={view.theme}
        heightPx={CHART_PX}
        legend={false}
        origin={originOf(view.run)}
      />
    </section>
  );
}
