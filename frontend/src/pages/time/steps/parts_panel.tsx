/**
 * What a step's time goes to, in one sentence and as bars: a rank in the middle, and
 * below it the straggler. Each part is a button that leads to what makes it.
 */

import type { StepsResponse, StragglersResponse } from "../../../api/types.gen";
import { useLive } from "../../../api/use_live";
import { formatInteger } from "../../../base/bytes";
import { formatSeconds } from "../../../base/durations";
import { formatQuantity } from "../../../model/words/quantity";
import { partHelp, partLabel } from "../../../model/words/step_part";
import { partColour } from "../../../render/palette";
import type { ViewProps } from "../../shared/view_props";
import type { StepsParams } from "./params";
import { PartBar, type BarPart } from "./part_bar";
import { flopsWords, rateText, RATE_WORDS } from "./rates";
import { beyond } from "./stragglers_table";
import { showStepInTrace, usualStep, wayOf, WAY_TITLES, type Way } from "./ways";

/** A difference below that share of the step is none. */
const TELLING = 0.01;
const NAMED = 3;

export function PartsPanel(props: {
  readonly view: ViewProps;
  readonly answer: StepsResponse;
  readonly data: StragglersResponse;
  readonly params: StepsParams;
}) {
  const { view, data, answer, params } = props;
  const traces = useLive(view.client, "traces", { run: view.run.id }, view.pollMs);
  const hasTraces = (traces.data?.numFiles ?? 0) > 0;
  const { parts, stepSeconds, rows, numStandingOut } = data;
  if (stepSeconds === null) return null;
  const late = numStandingOut > 0 ? (rows[0]?.rank ?? null) : null;
  const rank = late ?? view.ranks.rank;
  const usual = barOf(data, "usual");
  const ofLate = late === null ? [] : barOf(data, "ofFirst");
  const longest = Math.max(sumOf(usual), sumOf(ofLate));
  const lead = (way: Way): void => {
    if (way === "trace") {
      const step = params.step ?? usualStep(answer, rank);
      void showStepInTrace(view, rank, step, params.phase);
      return;
    }
    // Distributed compares ranks: narrowed to one it would have nothing to say.
    if (way === "operators" && rank !== null) view.chooseRank(rank);
    view.showPage(way, {});
  };
  return (
    <section class="steps-parts" aria-label="What a step's time goes to">
      <header>
        <h2>{stepSentence(data)}</h2>
        <Rates answer={answer} />
      </header>
      {parts.length > 0 && (
        <div class="step-bars">
          <PartBar
            {...{ longest, theme: view.theme, parts: usual, total: stepSeconds }}
            label={data.numRanks > 1 ? "median rank" : `rank ${answer.rank ?? "–"}`}
            note=""
          />
          {late !== null && (
            <PartBar
              {...{ longest, theme: view.theme, parts: ofLate, total: sumOf(ofLate) }}
              label={`rank ${late}`}
              note="straggler"
            />
          )}
        </div>
      )}
      <ul class="steps-ways">
        {parts.map(({ name, usual: seconds, ofFirst }) => {
          if (!((seconds ?? 0) > 0) && !((ofFirst ?? 0) > 0)) return null;
          const way = wayOf(name, hasTraces);
          const more =
            late === null || seconds === null || ofFirst === null
              ? 0
              : ofFirst - seconds;
          return (
            <li key={name}>
              <button
                type="button"
                title={`${partHelp(name)} Opens ${WAY_TITLES[way]}${rank === null || way === "distributed" ? "" : ` of rank ${rank}`}.`}
                onClick={() => lead(way)}
              >
                <i style={{ background: partColour(view.theme, name) }} />
                {partLabel(name)} <b>{formatQuantity(seconds ?? NaN, "seconds")}</b>
                {Math.abs(more) > TELLING * stepSeconds && (
                  <em class={more > 0 ? "status-warn" : "quiet"}>{beyond(more)}</em>
                )}
              </button>
            </li>
          );
        })}
      </ul>
    </section>
  );
}

function barOf(
  { parts }: StragglersResponse,
  of: "usual" | "ofFirst",
): readonly BarPart[] {
  return parts.map((part) => ({ name: part.name, seconds: part[of] ?? NaN }));
}

function sumOf(parts: readonly BarPart[]): number {
  return parts.reduce((sum, { seconds }) => sum + (seconds || 0), 0);
}

/** How long a step takes, the parts that take most of it, and what was left out. */
export function stepSentence(data: StragglersResponse): string {
  const { stepSeconds, numRanks, parts, numProfilerSteps: left, numSteps } = data;
  const most = [...parts]
    .filter(({ usual }) => (usual ?? 0) > 0)
    .sort((a, b) => (b.usual ?? 0) - (a.usual ?? 0))
    .slice(0, NAMED)
    .map(
      ({ name, usual }) =>
        `${partLabel(name).toLowerCase()} ${formatSeconds(usual ?? NaN)}`,
    );
  const whose = numRanks > 1 ? " on the median rank" : "";
  const first = `A step takes ${formatSeconds(stepSeconds ?? NaN)}${whose}`;
  const out =
    left > 0
      ? ` ${formatInteger(left)} of ${formatInteger(numSteps)} steps are not counted: the profiler took their time.`
      : "";
  return `${first}${most.length > 0 ? `: ${most.join(", ")}` : ""}.${out}`;
}

/** Throughput in one line; every number with whose it is where it is pointed at. */
function Rates({ answer }: { readonly answer: StepsResponse }) {
  const own = `rank ${answer.rank ?? "–"}`;
  const rates = answer.rates.filter(({ key }) => key !== "flops");
  return (
    <p class="steps-rates">
      {rates.map(({ key, median, summedMedian }) => {
        const whose =
          summedMedian === null
            ? own
            : `${key === "mfu" ? "Mean of" : "Sum of"} ${formatInteger(answer.numSummed)} ranks; ${own}: ${rateText(median, key)}`;
        const help = key === "mfu" ? flopsWords(answer) : RATE_WORDS[key][1];
        const text = rateText(summedMedian ?? median, key);
        return (
          <span
            key={key}
            title={`${help} Median over the steps. ${whose}. ${exactRate(summedMedian ?? median)}`}
          >
            {key === "mfu" ? `MFU ${text}` : text}
          </span>
        );
      })}
    </p>
  );
}

function exactRate(value: number | null): string {
  return value === null ? "Not known." : value.toLocaleString("en-US", EXACT);
}

const EXACT = { maximumFractionDigits: 6 } as const;
