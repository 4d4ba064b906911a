/**
 * A step's time by part, of the median rank and of the straggler. Each part leads to
 * its cause.
 */

import type { StepsResponse, StragglersResponse } from "../../../api/types.gen";
import { useLive } from "../../../api/live/use_live";
import { formatSeconds } from "../../../base/durations";
import type { ViewProps } from "../../shared/view_props";
import type { StepsParams } from "./params";
import { PartBar, partsOfStep, PartWays, sumOf } from "../profiled/part_bar";

/** Smaller differences, as a share of the step, are ignored. */
const TELLING = 0.01;

export function PartsPanel(props: {
  readonly view: ViewProps;
  readonly answer: StepsResponse;
  readonly data: StragglersResponse;
  readonly params: StepsParams;
}) {
  const { view, data, answer, params } = props;
  const traces = useLive(view.client, "traces", { run: view.run.id }, view.pollMs);
  const hasTraces = (traces.data?.numFiles ?? 0) > 0;
  const { stepSeconds } = data;
  if (stepSeconds === null) return null;
  const late = data.late[0] ?? null;
  const rank = late ?? view.ranks.rank;
  const usual = partsOfStep(data, view.theme, "usual");
  const ofLate = partsOfStep(data, view.theme, "ofFirst");
  const longest = Math.max(sumOf(usual), late === null ? 0 : sumOf(ofLate));
  const lead = (way: Way): void => {
    if (way === "trace") {
      showStepInTrace(view, rank, params.step ?? usualStep(answer, rank));
      return;
    }
    // Distributed compares ranks: it needs all of them.
    if (way === "operators" && rank !== null) view.chooseRank(rank);
    view.showPage(way, {});
  };
  const ways = usual.flatMap((part, i) => {
    const own = ofLate[i]?.value ?? NaN;
    if (!(part.value > 0) && !(own > 0)) return [];
    const way = wayOf(part.name, hasTraces);
    const whose = rank === null || way === "distributed" ? "" : ` of rank ${rank}`;
    const more = late === null ? NaN : own - part.value;
    return {
      ...part,
      help: `${part.help} Opens ${WAY_TITLES[way]}${whose}.`,
      lead: () => lead(way),
      more: Math.abs(more) > TELLING * stepSeconds && (
        <em class={more > 0 ? "tone-warn" : "quiet"}>
          {more > 0 ? "+" : ""}
          {formatSeconds(more)}
        </em>
      ),
    };
  });
  return (
    <section aria-label="What a step's time goes to">
      <header class="row">
        <h2>{data.sentence}</h2>
        <p class="row end small quiet">
          {answer.rates
            .filter(({ key }) => key !== "flops")
            .map(({ key, text, hint }) => (
              <span key={key} title={hint}>
                {text}
              </span>
            ))}
        </p>
      </header>
      {usual.length > 0 && (
        <div>
          <PartBar
            longest={longest}
            parts={usual}
            total={stepSeconds}
            label={data.numRanks > 1 ? "median rank" : `rank ${answer.rank ?? "–"}`}
          />
          {late !== null && (
            <PartBar
              longest={longest}
              parts={ofLate}
              label={
                <>
                  rank {late} <span class="quiet">straggler</span>
                </>
              }
            />
          )}
        </div>
      )}
      <PartWays parts={ways} />
    </section>
  );
}

type Way = "operators" | "distributed" | "trace";

const WAY_TITLES: Readonly<Record<Way, string>> = {
  operators: "Operators",
  distributed: "Distributed",
  trace: "Trace",
};

const OF_PARTS: Readonly<Record<string, Way>> = {
  forward: "operators",
  backward: "operators",
  optimizer: "operators",
  zero_grad: "operators",
  communication: "distributed",
};

/** Without profiler traces only spans exist, and those are in Trace. */
export function wayOf(part: string, hasTraces: boolean): Way {
  return hasTraces ? (OF_PARTS[part] ?? "trace") : "trace";
}

/**
 * A usual drawn step of a rank, else of any rank, without the profiler's own steps.
 * null: nothing is drawn.
 */
export function usualStep(answer: StepsResponse, rank: number | null): number | null {
  const { shownStep, columnRank, seconds, profilerSteps } = answer;
  const all = Array.from(shownStep, (step, column) => ({
    step,
    rank: columnRank[column] ?? -1,
    seconds: seconds[column] ?? NaN,
  })).filter(
    (drawnStep) =>
      drawnStep.seconds > 0 &&
      !profilerSteps.some(
        ({ first, last }) => first <= drawnStep.step && drawnStep.step <= last,
      ),
  );
  const own = all.filter((drawnStep) => drawnStep.rank === rank);
  const of = (own.length > 0 ? own : all).sort((a, b) => a.seconds - b.seconds);
  return of[Math.floor(of.length / 2)]?.step ?? null;
}

/** Trace finds a step by its number, or says which one it shows instead. */
export function showStepInTrace(
  view: ViewProps,
  rank: number | null,
  step: number | null,
): void {
  if (rank !== null) view.chooseRank(rank);
  view.showPage("trace", { w0: null, w1: null, step: step?.toString() ?? null });
}
