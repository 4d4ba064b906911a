/**
 * Few ranks are lines; many are bands with their outliers, and the heatmap below
 * identifies the rank.
 */

import { useMemo, useRef } from "preact/hooks";
import type { SeriesInfo, TimelineResponse } from "../../api/types.gen";
import { useLive } from "../../api/live/use_live";
import { formatInteger } from "../../base/bytes";
import { formatQuantity } from "../../model/words/quantity";
import type { XRange } from "../../widgets/plot/range";
import { useWidth } from "../../widgets/plot/canvas";
import { ProblemList } from "../../widgets/problem_list/problem_list";
import { Nothing, Waiting } from "../../widgets/state/state";
import { Segmented, TextButton } from "../shared/controls/choices";
import { RanksTable } from "../shared/ranks_table";
import { usePageState } from "../shared/page_state";
import { useRange, type RangeState } from "../shared/range/use_range";
import type { ViewProps } from "../shared/view_props";
import { AbsentList } from "../shared/panels/absent_list";
import { Controls } from "./controls";
import { FlatSeries } from "./flat_series";
import { Host } from "./host";
import {
  chosenMark,
  firstOom,
  GROUP_WORDS,
  peakOf,
  rankOfId,
} from "../shared/series/lines";
import { RankMap } from "../shared/series/rank_map";
import {
  extentOf,
  SeriesBelow,
  SeriesChart,
  seriesQuery,
} from "../shared/series/series_chart";
import { useTwoAnswers } from "../shared/range/use_two_answers";
import { TIMELINE, type TimelineParams } from "../shared/series/params";
import "./timeline.css";

const CHART_PX = 240;
const COMPANION_PX = 132;
const MOST_COMPANIONS = 8;
/** With more ranks the map shows differences from their median. */
const MOST_ABSOLUTE = 3;
const MAP_WORDS = {
  excess: ["Beyond the median", "How far each rank is from the median of the ranks"],
  value: ["Values", "What each rank recorded"],
} as const;

export function TimelineView(view: ViewProps) {
  const { client, run, ranks, pollMs } = view;
  const [params, setState] = usePageState(view, TIMELINE);
  const box = useRef<HTMLDivElement>(null);
  const px = useWidth(box);
  const range = useRange(view.params, view.setParams);
  const subject = seriesQuery(view, params, params.series);
  const data = useTwoAnswers(client, "timeline", subject, range, px, pollMs);
  const { drawn, whole, stale } = data;
  const answer = drawn ?? whole;
  // Last on the page, so requested last.
  const tableQuery = answer === null ? null : { run: run.id };
  const overview = useLive(client, "overview", tableQuery, pollMs);
  const strip = overview.data?.strip ?? null;
  const extent = useMemo(
    () => (answer === null ? { low: 0, high: 1 } : extentOf(answer)),
    [answer?.xLow, answer?.xHigh, answer?.x],
  );
  const hasMap = ranks.rank === null && run.numRanks > 1;
  const map = params.map ?? (run.numRanks > MOST_ABSOLUTE ? "excess" : "value");

  /** This rank and this step, on all pages. */
  const choose = (rank: number, step: number | null): void => {
    if (step !== null) setState({ step }, "push");
    if (rank !== ranks.rank) view.chooseRank(rank);
  };
  const series = answer?.series ?? null;
  const flat = answer?.available.filter(({ isFlat }) => isFlat) ?? [];
  const shared = { view, params, choose };

  return (
    <div class="column timeline" ref={box} aria-busy={stale}>
      <Waiting
        error={data.error}
        hasContent={answer !== null}
        blocksPx={[32, CHART_PX]}
      />
      {answer !== null && series === null && (
        <Nothing title="Nothing to draw yet">
          <p>
            No rank has recorded a series. The list below says why; the page fills by
            itself once data arrive.
          </p>
        </Nothing>
      )}
      {answer !== null && series !== null && (
        <>
          <header class="row">
            <Lead {...shared} answer={whole ?? answer} />
            <Controls answer={answer} view={view} />
          </header>
          <Chart
            {...shared}
            range={range}
            extent={extent}
            whole={whole}
            answer={{ ...answer, series }}
          />
          {(ranks.rank !== null || run.numRanks === 1) && (
            <div class="timeline-companions">
              {answer.available
                .filter(
                  ({ headline, isFlat, key }) =>
                    headline && !isFlat && key !== series.key,
                )
                .slice(0, MOST_COMPANIONS)
                .map(({ key }) => (
                  <SeriesBelow
                    key={key}
                    view={view}
                    params={params}
                    series={key}
                    range={{ ...range, extent, px }}
                    heightPx={COMPANION_PX}
                    logScale={params.logScale}
                    smoothing={params.smoothing}
                  />
                ))}
            </div>
          )}
          <FlatSeries count={flat.length}>
            <p class="flat-series-names">
              {flat.map(({ key, label }) => (
                <TextButton key={key} press={() => setState({ series: key }, "push")}>
                  {label}
                </TextButton>
              ))}
            </p>
          </FlatSeries>
        </>
      )}
      {hasMap && (
        // Requested at once: the slowest answer, independent of the others.
        <section class="timeline-map" aria-label="Ranks by step">
          <RankMap
            view={view}
            params={params}
            px={px}
            allRanks={strip === null ? null : strip.rank}
            shared={{ range: range.shown, setRange: range.setRange }}
            onPick={(rank, { firstStep }) => choose(rank, firstStep)}
            excess={map === "excess"}
            page={{ view }}
          />
          <Segmented
            label="Heatmap values"
            chosen={map}
            labels={MAP_WORDS}
            onChoose={(option) => setState({ map: option }, "push")}
          />
        </section>
      )}
      {answer !== null && (
        <>
          <Host view={view} x={answer.x} range={range} px={px} />
          {strip !== null && hasMap && strip.rank.length > 0 && (
            <RanksTable view={view} strip={strip} />
          )}
          <AbsentList
            absent={answer.absent.map((absentSeries) => ({
              ...absentSeries,
              note: GROUP_WORDS[absentSeries.group],
            }))}
          />
          {answer.problems.length > 0 && <ProblemList problems={answer.problems} />}
        </>
      )}
    </div>
  );
}

interface PartProps {
  readonly view: ViewProps;
  readonly params: TimelineParams;
  readonly choose: (rank: number, step: number | null) => void;
}

function Chart(
  props: PartProps & {
    readonly answer: TimelineResponse & { readonly series: SeriesInfo };
    readonly whole: TimelineResponse | null;
    readonly extent: XRange;
    readonly range: RangeState;
  },
) {
  const { view, answer, whole, range, params, extent } = props;
  const { step, logScale, smoothing } = params;
  const marks = useMemo(
    () => [...answer.marks, ...(step === null ? [] : chosenMark(step, answer))],
    [answer.marks, step],
  );
  const { rank } = view.ranks;
  const { label } = answer.series;
  return (
    <section class="timeline-chart">
      <SeriesChart
        view={view}
        answer={answer}
        whole={whole}
        marks={marks}
        extent={extent}
        logScale={logScale}
        smoothing={smoothing}
        title={rank === null ? label : `${label} of rank ${rank}`}
        range={range.shown}
        onRange={range.setRange}
        heightPx={CHART_PX}
        onPick={(picked) =>
          props.choose(
            picked.kind === "line" ? rankOfId(picked.id) : picked.rank,
            answer.x === "step" ? Math.round(picked.x) : null,
          )
        }
        peak={() => peakOf(whole ?? answer)?.x ?? null}
        page={{ view, group: "Timeline" }}
      />
      <p class="timeline-facts quiet">
        {answer.rowsPerPoint > 1 && (
          <span>
            Each point stands for {formatInteger(answer.rowsPerPoint)} samples: the line
            is the highest of them, the shade reaches down to the lowest
          </span>
        )}
        {step !== null && (
          <span>
            Step {formatInteger(step)} is chosen for all pages.{" "}
            <TextButton press={() => view.setParams({ step: null }, "push")}>
              Clear
            </TextButton>
          </span>
        )}
        {view.run.live && (
          <span>
            {range.shown === null
              ? "Following the newest"
              : "Not following; F follows again"}
          </span>
        )}
      </p>
    </section>
  );
}

function Lead(props: PartProps & { readonly answer: TimelineResponse }) {
  const { view, answer, choose } = props;
  const { series } = answer;
  const peak = peakOf(answer);
  const oom = firstOom(answer);
  if (series === null || peak === null) return null;
  const step = (x: number) => (answer.x === "step" ? Math.round(x) : null);
  const named = (text: string, rank: number, x: number) => (
    <TextButton
      title="This rank and this step, on all pages"
      press={() => choose(rank, step(x))}
    >
      {text}
    </TextButton>
  );
  const atStep = (x: number) =>
    answer.x === "step" ? ` at step ${formatInteger(Math.round(x))}` : "";
  const out = oom?.rank ?? null;
  return (
    <p class="timeline-lead lead">
      {oom !== null && out !== null && (
        <>
          {named(`Rank ${out}`, out, oom.x)} ran out of memory{atStep(oom.x)}.{" "}
        </>
      )}
      {series.label} reaches{" "}
      <strong>{formatQuantity(peak.value, series.unit, view.byteUnit)}</strong> on{" "}
      {named(`rank ${peak.rank}`, peak.rank, peak.x)}
      {atStep(peak.x)}.
    </p>
  );
}
