/**
 * How it went: of several ranks who is far from the others, and when, with failures
 * marked; of one rank its memory over the run.
 */

import { useMemo, useRef, useState } from "preact/hooks";
import type { TimelineResponse } from "../../api/types.gen";
import { useLive } from "../../api/use_live";
import { originOf } from "../../model/words/origin";
import type { ExportSource } from "../../widgets/export/source";
import { LineChart } from "../../widgets/line_chart/line_chart";
import type { XRange } from "../../widgets/line_chart/types";
import { useWidth } from "../../widgets/line_chart/use_size";
import { Failure, Skeleton } from "../../widgets/state/state";
import type { ViewProps } from "../shared/view_props";
import { chartLimit, chartLines, nextSlots, seriesLabel } from "../shared/series/lines";
import { readParams } from "../shared/series/params";
import { RankMap } from "../shared/series/rank_map";

const MOST_PX = 216;
const LINE_PX = 176;
/** Of fewer ranks none is in the middle: they are drawn as lines. */
const FEWEST = 3;

export function Hero(props: {
  readonly view: ViewProps;
  /** All ranks of the run. */
  readonly known: Int32Array;
}) {
  const { view, known } = props;
  const box = useRef<HTMLDivElement>(null);
  const px = useWidth(box);
  const [range, setRange] = useState<XRange | null>(null);
  const exporter = useRef<ExportSource | null>(null);
  const { rank } = view.ranks;
  return (
    <div ref={box} class="hero">
      {rank === null && known.length >= FEWEST ? (
        <RankMap
          view={view}
          // What the Timeline shows is not what happened at a glance.
          params={PARAMS}
          available={null}
          known={known}
          range={range}
          setRange={setRange}
          onPick={(picked) => view.chooseRank(picked)}
          px={px}
          exporter={exporter}
          excess
          mostPx={MOST_PX}
        />
      ) : (
        <RankTimeline view={view} px={px} range={range} setRange={setRange} />
      )}
    </div>
  );
}

const PARAMS = readParams(new Map());

function RankTimeline(props: {
  readonly view: ViewProps;
  readonly px: number;
  readonly range: XRange | null;
  readonly setRange: (range: XRange | null) => void;
}) {
  const { view, px } = props;
  const { client, run, ranks, pollMs } = view;
  const query = px === 0 ? null : { run: run.id, rank: ranks.rank, px };
  const { data, error } = useLive(client, "timeline", query, pollMs);
  if (data === null) {
    return error === null ? (
      <Skeleton heightPx={LINE_PX} />
    ) : (
      <Failure failure={error} />
    );
  }
  return data.series === null ? null : <Line {...props} answer={data} />;
}

function Line(
  props: Parameters<typeof RankTimeline>[0] & { readonly answer: TimelineResponse },
) {
  const { view, answer, range, setRange } = props;
  const { series } = answer;
  const lines = useMemo(
    () => chartLines(answer.lines, nextSlots(answer.lines, new Map()), false),
    [answer],
  );
  if (series === null) return null;
  return (
    <LineChart
      label={seriesLabel(series, answer.available)}
      unit={series.unit}
      byteUnit={view.byteUnit}
      x={answer.x}
      lines={lines}
      marks={answer.marks}
      limit={chartLimit(answer, view.byteUnit)}
      extent={{ low: answer.xLow - 0.5, high: answer.xHigh + 0.5 }}
      range={range}
      onRange={setRange}
      cursor={view.cursor}
      theme={view.theme}
      heightPx={LINE_PX}
      legend={false}
      origin={originOf(view.run)}
    />
  );
}
