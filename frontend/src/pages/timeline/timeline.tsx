/**
 * Timeline: one series of every rank over steps or time. Few ranks are lines; many are
 * bands with their outliers, and the heatmap below says which rank. The table says it
 * in numbers.
 */

import { useMemo, useRef } from "preact/hooks";
import type { SeriesInfo, TimelineResponse } from "../../api/types.gen";
import { useLive } from "../../api/use_live";
import { formatInteger } from "../../base/bytes";
import { parseRankSet } from "../../base/rank_set";
import { formatQuantity } from "../../model/words/quantity";
import { originOf } from "../../model/words/origin";
import type { XRange } from "../../widgets/plot/range";
import { useWidth } from "../../widgets/plot/canvas";
import { ProblemList } from "../../widgets/problem_list/problem_list";
import { RankTable } from "../../widgets/rank_table/rank_table";
import { Nothing, Waiting } from "../../widgets/state/state";
import { Segmented } from "../shared/controls/choices";
import { useRange } from "../shared/range/use_range";
import type { ViewProps } from "../shared/view_props";
import { AbsentList } from "../shared/panels/absent_list";
import { Controls } from "./controls";
import { Host } from "./host/host";
import {
  chosenMark,
  firstOom,
  GROUP_WORDS,
  peakOf,
  rankOfId,
  seriesLabel,
} from "../shared/series/lines";
import { readParams } from "../shared/series/params";
import { RankMap } from "../shared/series/rank_map";
import { SeriesBelow, SeriesChart } from "../shared/series/series_chart";
import { useTwoAnswers, type TwoAnswers } from "../shared/range/use_two_answers";
import type { TimelineParams } from "../shared/series/params";
import "./timeline.css";

const CHART_PX = 240;
const TABLE_PX = 320;
const COMPANION_PX = 132;
const MOST_COMPANIONS = 8;
const GROUPS = Object.keys(GROUP_WORDS);
/** Of more ranks the map shows how far each is from their median. */
const MOST_ABSOLUTE = 3;
const MAP_WORDS = {
  excess: ["Beyond the median", "How far each rank is from the median of the ranks"],
  value: ["Values", "What each rank recorded"],
} as const;

export function TimelineView(props: ViewProps) {
  const { client, run, ranks, pollMs } = props;
  const params = readParams(props.params);
  const box = useRef<HTMLDivElement>(null);
  const px = useWidth(box);
  const { shown, settled, setRange } = useRange(props.params, props.setParams);
  const data = useTimeline(props, params, shown, settled, px);
  const { drawn, whole } = data;
  const answer = drawn ?? whole;
  // The table stands last on the page, so it asks last.
  const tableQuery = answer === null ? null : { run: run.id };
  const overview = useLive(client, "overview", tableQuery, pollMs);
  const strip = overview.data?.strip ?? null;
  const extent = useMemo(
    () => (answer === null ? { low: 0, high: 1 } : extentOf(answer)),
    [answer?.xLow, answer?.xHigh, answer?.x],
  );
  const hasMap = ranks.rank === null && run.numRanks > 1;
  const map = params.map ?? (run.numRanks > MOST_ABSOLUTE ? "excess" : "value");

  /** A click on the chart or the map: this rank and this step, on all pages. */
  const choose = (rank: number, step: number | null): void => {
    if (step !== null) props.setParams({ step: step.toString() });
    if (rank !== ranks.rank) props.chooseRank(rank);
  };
  const togglePin = (rank: number): void => {
    const { pinned } = ranks;
    props.setPinned(
      pinned.includes(rank)
        ? pinned.filter((other) => other !== rank)
        : [...pinned, rank].sort((a, b) => a - b),
    );
  };
  const filtered = useMemo(() => {
    const parsed = parseRankSet(ranks.filter);
    return parsed.ok && parsed.ranks.length > 0 ? new Set(parsed.ranks) : null;
  }, [ranks.filter]);

  return (
    <div class="timeline" ref={box} aria-busy={data.stale}>
      <Waiting
        error={data.error}
        hasContent={answer !== null}
        blocksPx={[32, CHART_PX]}
      />
      {answer !== null && (
        <>
          {answer.series !== null && (
            <header class="timeline-head">
              <Lead view={props} answer={whole ?? answer} choose={choose} />
              <Controls answer={answer} params={params} setParams={props.setParams} />
            </header>
          )}
          {answer.series === null ? (
            <Nothing title="Nothing to draw yet">
              <p>
                No rank has recorded a series. The list below says why; the page fills
                by itself once data arrive.
              </p>
            </Nothing>
          ) : (
            <Chart
              view={props}
              drawn={answer}
              whole={whole}
              stale={data.stale}
              extent={extent}
              range={shown}
              setRange={setRange}
              choose={choose}
              params={params}
            />
          )}
          {answer.series !== null && (ranks.rank !== null || run.numRanks === 1) && (
            <div class="timeline-companions">
              {companionsOf(answer.series, answer.available).map((series) => (
                <SeriesBelow
                  key={series.key}
                  view={props}
                  params={params}
                  series={series.key}
                  range={{ extent, shown, settled, setRange, px }}
                  heightPx={COMPANION_PX}
                  logScale={params.logScale}
                  smoothing={params.smoothing}
                />
              ))}
            </div>
          )}
        </>
      )}
      {hasMap && (
        // Asks at once: its answer is the slowest, and needs nothing of the others.
        <section class="timeline-map" aria-label="Ranks by step">
          <RankMap
            view={props}
            params={params}
            available={answer?.available ?? null}
            known={strip === null ? null : strip.rank}
            range={shown}
            setRange={setRange}
            onPick={choose}
            px={px}
            excess={map === "excess"}
            page={{ view: props }}
          />
          <Segmented
            label="What the heatmap shows"
            options={["excess", "value"] as const}
            chosen={map}
            words={(one) => MAP_WORDS[one]}
            onChoose={(one) => props.setParams({ map: one }, "push")}
          />
        </section>
      )}
      {answer !== null && (
        <>
          <Host
            view={props}
            x={answer.x}
            shown={shown}
            settled={settled}
            setRange={setRange}
            px={px}
          />
          {strip !== null && hasMap && strip.rank.length > 0 && (
            <RankTable
              strip={strip}
              ranks={filtered}
              pinned={ranks.pinned}
              onPin={togglePin}
              onPick={props.chooseRank}
              byteUnit={props.byteUnit}
              heightPx={TABLE_PX}
              origin={originOf(run)}
            />
          )}
          <AbsentList
            absent={answer.absent.map((one) => ({
              ...one,
              note: GROUP_WORDS[one.group],
            }))}
          />
          {answer.problems.length > 0 && <ProblemList problems={answer.problems} />}
        </>
      )}
    </div>
  );
}

/** The other headline series of one rank: memory first, it is what people come for. */
function companionsOf(
  chosen: SeriesInfo,
  available: readonly SeriesInfo[],
): readonly SeriesInfo[] {
  return available
    .filter((one) => one.headline && one.key !== chosen.key)
    .sort((a, b) => GROUPS.indexOf(a.group) - GROUPS.indexOf(b.group))
    .slice(0, MOST_COMPANIONS);
}

/** Steps reach half a step to either side, as the heatmap's cells do. */
function extentOf(answer: TimelineResponse): XRange {
  const half = answer.x === "step" ? 0.5 : 0;
  return { low: answer.xLow - half, high: answer.xHigh + half };
}

interface ChartProps {
  readonly view: ViewProps;
  readonly drawn: TimelineResponse;
  readonly whole: TimelineResponse | null;
  readonly stale: boolean;
  readonly extent: XRange;
  readonly range: XRange | null;
  readonly setRange: (range: XRange | null) => void;
  readonly choose: (rank: number, step: number | null) => void;
  readonly params: TimelineParams;
}

function Chart(props: ChartProps) {
  const { view, drawn, whole, range, params } = props;
  const { step } = params;
  const marks = useMemo(
    () => [...drawn.marks, ...(step === null ? [] : chosenMark(step, drawn))],
    [drawn, step],
  );
  const { series } = drawn;
  if (series === null) return null;
  const { rank } = view.ranks;
  const label = seriesLabel(series, drawn.available);
  return (
    <section class={props.stale ? "timeline-chart stale" : "timeline-chart"}>
      <SeriesChart
        view={view}
        answer={{ ...drawn, series }}
        whole={whole}
        title={rank === null ? label : `${label} of rank ${rank}`}
        marks={marks}
        extent={props.extent}
        range={range}
        onRange={props.setRange}
        heightPx={CHART_PX}
        logScale={params.logScale}
        smoothing={params.smoothing}
        onPick={(picked) =>
          props.choose(
            picked.kind === "line" ? rankOfId(picked.id) : picked.rank,
            drawn.x === "step" ? Math.round(picked.x) : null,
          )
        }
        peak={() => peakOf(whole ?? drawn)?.x ?? null}
        page={{ view, group: "Timeline" }}
      />
      <p class="timeline-facts quiet">
        {drawn.rowsPerPoint > 1 && (
          <span>
            Each point stands for {formatInteger(drawn.rowsPerPoint)} samples: the line
            is the highest of them, the shade reaches down to the lowest
          </span>
        )}
        {step !== null && (
          <span>
            Step {formatInteger(step)} is chosen for all pages.{" "}
            <button
              type="button"
              class="text-button"
              onClick={() => view.setParams({ step: null }, "push")}
            >
              Clear
            </button>
          </span>
        )}
        {view.run.live && (
          <span>
            {range === null ? "Following the newest" : "Not following; F follows again"}
          </span>
        )}
      </p>
    </section>
  );
}

/** Who ran out of memory and who is highest, each with the way to its step. */
function Lead(props: {
  readonly view: ViewProps;
  readonly answer: TimelineResponse;
  readonly choose: (rank: number, step: number | null) => void;
}) {
  const { view, answer, choose } = props;
  const { series } = answer;
  const peak = peakOf(answer);
  const oom = firstOom(answer);
  if (series === null || peak === null) return null;
  const step = (x: number) => (answer.x === "step" ? Math.round(x) : null);
  const named = (text: string, rank: number, x: number) => (
    <button
      type="button"
      class="text-button"
      title="This rank and this step, on all pages"
      onClick={() => choose(rank, step(x))}
    >
      {text}
    </button>
  );
  const at = (x: number) =>
    answer.x === "step" ? ` at step ${formatInteger(Math.round(x))}` : "";
  const out = oom?.rank ?? null;
  return (
    <p class="timeline-lead">
      {oom !== null && out !== null && (
        <>
          {named(`Rank ${out}`, out, oom.x)} ran out of memory{at(oom.x)}.{" "}
        </>
      )}
      {seriesLabel(series, answer.available)} reaches{" "}
      <strong>{formatQuantity(peak.value, series.unit, view.byteUnit)}</strong> on{" "}
      {named(`rank ${peak.rank}`, peak.rank, peak.x)}
      {at(peak.x)}.
    </p>
  );
}

/** The answers of `/timeline` for what is in sight. */
function useTimeline(
  props: ViewProps,
  params: TimelineParams,
  shown: XRange | null,
  settled: XRange | null,
  px: number,
): TwoAnswers<TimelineResponse> {
  const { client, run, ranks, pollMs } = props;
  const subject = {
    run: run.id,
    rank: ranks.rank,
    ranks: ranks.filter,
    pinned: ranks.pinned.join(","),
    series: params.series,
    x: params.x,
    phase: params.phase,
  };
  return useTwoAnswers(client, "timeline", subject, shown, settled, px, pollMs);
}
