/** Throughput: steps, samples or tokens per second, FLOP/s or MFU, of one rank or of all. */

import { useMemo } from "preact/hooks";
import type { StepRate, StepsResponse, Unit } from "../../../api/types.gen";
import { formatInteger } from "../../../base/bytes";
import { originOf } from "../../../model/words/origin";
import { formatQuantity } from "../../../model/words/quantity";
import { LineChart } from "../../../widgets/line_chart/line_chart";
import type { ChartLine } from "../../../widgets/line_chart/types";
import type { XRange } from "../../../widgets/plot/range";
import { Segmented } from "../../shared/controls/choices";
import type { ViewProps } from "../../shared/view_props";
import { CHART_PX, type RateKey, type StepsParams } from "./params";

export const RATE_WORDS: Readonly<Record<RateKey, readonly [string, string]>> = {
  steps: ["Steps/s", "1 ÷ step time, by the time from step to step."],
  samples: [
    "Samples/s",
    "Samples of rec.step(samples=…) ÷ step time; over all ranks, the sum.",
  ],
  tokens: [
    "Tokens/s",
    "Tokens of rec.step(tokens=…) ÷ step time; over all ranks, the sum.",
  ],
  flops: [
    "FLOP/s",
    "Floating point operations of a step ÷ step time: as many as the flops settings say, or torch’s profiler counted.",
  ],
  mfu: [
    "MFU",
    "Model FLOPs utilization: operations per second ÷ the device’s peak rate.",
  ],
};

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
    <section aria-label="Throughput">
      <div class="row">
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
        <span class="quiet small">
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

export function unitOf(key: RateKey): Unit {
  return key === "mfu" ? "percent" : "per_second";
}

/** What is shown unless something else was chosen: the most telling one there is. */
export function chosenRate(
  rates: readonly StepRate[],
  wanted: RateKey | null,
): StepRate | null {
  const order: readonly (RateKey | null)[] = [
    wanted,
    "tokens",
    "samples",
    "mfu",
    "steps",
    "flops",
  ];
  for (const key of order) {
    const found = rates.find((rate) => rate.key === key);
    if (found !== undefined) return found;
  }
  return null;
}

export function canSum(rate: StepRate): boolean {
  return rate.summed.length > 0;
}

export function rateLines(
  answer: StepsResponse,
  rate: StepRate,
  summed: boolean,
): readonly ChartLine[] {
  const all = summed && canSum(rate);
  const values = all ? rate.summed : rate.values;
  const { edges, firstStep, stepsPerColumn } = answer;
  const middle = (stepsPerColumn - 1) / 2;
  const x = Float64Array.from(values, (_, c) =>
    answer.x === "step"
      ? (firstStep[c] ?? NaN) + middle
      : ((edges[c] ?? NaN) + (edges[c + 1] ?? NaN)) / 2,
  );
  const what = rate.key === "mfu" ? "mean of" : "all";
  const label = all
    ? `${what} ${formatInteger(answer.numSummed)} ranks`
    : `rank ${answer.rank ?? "–"}`;
  return [{ id: label, label, x, y: values, yLow: values, colour: 0 }];
}

/** `1.2 k/s`-like text would hide digits; large rates keep three of them with a prefix. */
export function rateText(value: number | null, key: RateKey, bare = false): string {
  if (value === null || !Number.isFinite(value)) return "–";
  if (key === "mfu") return formatQuantity(value, "percent");
  const unit = key === "flops" ? "FLOP/s" : `${key}/s`;
  const scale = [
    [1e15, "P"],
    [1e12, "T"],
    [1e9, "G"],
    [1e6, "M"],
  ] as const;
  const [by, prefix] = scale.find(([least]) => value >= least) ?? [1, ""];
  const number = value / by;
  const digits = number >= 100 ? 0 : number >= 10 ? 1 : 2;
  const text = number.toLocaleString("en-US", {
    minimumFractionDigits: number >= 1000 ? 0 : digits,
    maximumFractionDigits: number >= 1000 ? 0 : digits,
  });
  return bare ? `${text} ${prefix}`.trim() : `${text} ${prefix}${unit}`;
}

/** Which number of operations the MFU rests on, and the formula. */
export function flopsWords(answer: StepsResponse): string {
  const { origin, perStep, devicePeak, missing } = answer.flops;
  const formula =
    "MFU = floating point operations per second ÷ device_peak, by the time from step to step";
  if (missing !== "") return `MFU is not known without ${missing}.`;
  const from =
    origin === "settings"
      ? "the flops settings of the recording"
      : "what torch's profiler counted in a trace";
  return (
    `${formula}. Operations from ${from}: ${rateText(perStep, "flops").replace("/s", "")} per step;` +
    ` device_peak ${rateText(devicePeak, "flops")}.`
  );
}
